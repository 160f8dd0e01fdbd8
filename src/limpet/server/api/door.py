"""The door of the API: who asks, what for, and by which of the two ways it is answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from limpet.errors import LimpetError
from limpet.gateway.ground import Agents
from limpet.net.client import Web
from limpet.server.api import embeddings, models, openapi, passing
from limpet.server.api.access import Access, Caller
from limpet.server.api.asks import Ask, Dialect, Ended, Fault, Head, Line
from limpet.server.api.chat import Chat
from limpet.server.api.conversing import Conversing, Named, Talk
from limpet.server.api.faults import fault_of
from limpet.server.api.messages import Messages
from limpet.server.api.requests import Repetitions, body_of, ignored
from limpet.server.api.responses import Responses
from limpet.store import api_threads
from limpet.store.driver import Store
from limpet.store.tokens import Scope
from limpet.types.ids import new_id
from limpet.types.ports import Clock

log = logging.getLogger(__name__)

HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
JSON, EVENTS = "application/json", "text/event-stream"
REST = 10.0
"""Seconds of silence after which a stream says that it lives."""
BEGUN = 4
"""Looks at what is to come before a stream begins: what fails at once is answered with a status of its own."""
KEPT = 30 * 86_400_000
"""How long an answer to a program with tools of its own can be gone on from (ms)."""

Pieces = AsyncGenerator[str | Ended | None]


@dataclass(frozen=True, slots=True)
class Answering:
    """A request that was taken. `talk` is there when an agent answers."""

    ask: Ask
    head: Head
    pieces: Pieces
    talk: Talk | None = None
    ignored: str = ""

    @property
    def headers(self) -> dict[str, str]:
        said = {"X-Limpet-Session": self.talk.session} if self.talk is not None else {}
        return HEADERS | said | ({"X-Limpet-Ignored": self.ignored} if self.ignored else {})


class Door:
    """Answers all below `/v1`."""

    def __init__(
        self, access: Access, agents: Agents, *, conversing: Conversing, store: Store, web: Web, clock: Clock
    ) -> None:
        self._access = access
        self._agents = agents
        self._conversing = conversing
        self._store = store
        self._web = web
        self._clock = clock
        self._repetitions = Repetitions()
        self._leaving: set[asyncio.Task[None]] = set()

    def routes(self) -> list[BaseRoute]:
        chat: Dialect = Chat()
        return [
            Route("/v1/chat/completions", self._answering(chat), methods=["POST"]),
            Route("/v1/responses", self._answering(Responses()), methods=["POST"]),
            Route("/v1/messages", self._answering(Messages()), methods=["POST"]),
            Route("/v1/embeddings", self._embed, methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{model:path}", self._models),
            Route("/openapi.json", self._document),
        ]

    def _answering(self, dialect: Dialect) -> Callable[[Request], object]:
        async def answer(request: Request) -> Response:
            try:
                taken = await self._take(request, dialect)
                return await (self._stream if taken.ask.stream else self._whole)(request, dialect, taken)
            except (Fault, LimpetError, msgspec.MsgspecError, RecursionError) as error:
                return _refused(error, dialect)

        return answer

    async def _take(self, request: Request, dialect: Dialect) -> Answering:
        """Raises `Fault`, `LimpetError`, `msgspec.MsgspecError`."""
        caller = await self._caller(request, "chat")
        body = await body_of(request, self._agents.settings.api.size)
        ask = dialect.read(body)
        left_out = ignored(body, dialect.fields)
        agent = models.agent_of(ask.model, self._agents.names, caller)
        before = self._before(ask, caller)
        if ask.passes_through or before:
            return await self._pass(ask, caller, agent=agent, lines=(*before, *ask.lines), left_out=left_out)
        event = self._repetitions.name(caller.name, request.headers, body)
        named = Named(request.headers.get("x-limpet-session", "").strip(), event)
        talk = await self._conversing.begin(ask, caller, agent=agent, named=named)
        minutes = self._agents.settings.api.minutes
        pieces = self._conversing.answers(talk, caller, stream=ask.stream, minutes=minutes)
        return Answering(ask, self._head(ask, talk.number), pieces, talk, left_out)

    def _before(self, ask: Ask, caller: Caller) -> tuple[Line, ...]:
        """What was said up to the answer that a program with tools of its own goes on from."""
        if not ask.previous:
            return ()
        now, name = self._clock.now(), ask.previous
        thread = self._store.read(lambda connection: api_threads.find(connection, caller.name, name, now=now))
        if thread is None and ask.passes_through:
            why = f"There is no answer {name[:80]!r} to a request with tools; the agent's own take none."
            raise Fault(404, why, code="previous_response_not_found", field="previous_response_id")
        return passing.goes_on(thread.payload) if thread is not None else ()

    async def _pass(self, ask: Ask, caller: Caller, *, agent: str, lines: tuple[Line, ...], left_out: str) -> Answering:
        head = self._head(ask, new_id("p"))
        async with self._agents.use(agent) as services:
            messages = await passing.messages_of(lines, services, self._web)

        async def pieces() -> Pieces:
            async with self._agents.use(agent) as services, aclosing(passing.answers(ask, messages, services)) as said:
                async for one in said:
                    if isinstance(one, Ended) and ask.keep:
                        await self._keep(caller, f"resp_{head.number}", passing.kept(lines, one))
                    yield one

        return Answering(ask, head, pieces(), None, left_out)

    async def _keep(self, caller: Caller, name: str, payload: bytes) -> None:
        now = self._clock.now()
        await self._store.write(
            lambda connection: api_threads.note(connection, caller.name, name, payload=payload, lasts=KEPT, now=now)
        )

    def _head(self, ask: Ask, number: str) -> Head:
        return Head(number, ask.model, self._clock.now() // 1000, ask.usage)

    async def _whole(self, request: Request, dialect: Dialect, taken: Answering) -> Response:
        finished = False
        try:
            async with aclosing(taken.pieces) as pieces:
                async for one in pieces:
                    if isinstance(one, Ended):
                        finished = True
                        body = dialect.whole(taken.head, one)
                        return Response(body, media_type=JSON, headers=taken.headers)
                    if one is None and self._stops and await request.is_disconnected():
                        break
        finally:
            if not finished:
                self._left(taken)
        return Response(status_code=400)  # nobody reads it

    async def _stream(self, request: Request, dialect: Dialect, taken: Answering) -> Response:
        """Raises what goes wrong before anything was said."""
        first: str | Ended | None = None
        for _ in range(BEGUN):
            first = await anext(taken.pieces)
            if first is not None:
                break
        told = self._told(request, dialect, taken, first=first)
        return StreamingResponse(told, media_type=EVENTS, headers=taken.headers)

    async def _told(
        self, request: Request, dialect: Dialect, taken: Answering, *, first: str | Ended | None
    ) -> AsyncGenerator[bytes]:
        speaker, spoke = dialect.speaker(taken.head), self._clock.monotonic()
        one, finished = first, False
        try:
            async with aclosing(taken.pieces) as pieces:
                yield speaker.begin()
                while not isinstance(one, Ended):
                    now = self._clock.monotonic()
                    if one is None and self._stops and await request.is_disconnected():
                        return
                    if one is not None or now - spoke > REST:
                        spoke = now
                        yield speaker.piece(one) if one is not None else speaker.rest()
                    one = await anext(pieces)
                finished = True
                yield speaker.end(one)
        except (Fault, LimpetError) as error:
            finished = True
            yield speaker.fail(error if isinstance(error, Fault) else fault_of(error))
        finally:
            if not finished:
                self._left(taken)

    @property
    def _stops(self) -> bool:
        """Whether a turn ends when its program leaves."""
        return self._agents.settings.api.gone == "stop"

    def _left(self, taken: Answering) -> None:
        """The program has left. This may be a task that is being cancelled, so another one stops the turn."""
        if taken.talk is None or not self._stops:
            return
        task = asyncio.create_task(self._stop(taken.talk), name="stop of a turn whose program has left")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _stop(self, talk: Talk) -> None:
        try:
            await self._conversing.leave(talk)
        except LimpetError as error:
            log.warning("a turn whose program has left goes on: %s", error)

    async def close(self) -> None:
        """Wait for what is being stopped."""
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await self._web.close()

    async def _embed(self, request: Request) -> Response:
        try:
            caller = await self._caller(request, "chat")
            given = embeddings.read(await body_of(request, self._agents.settings.api.size))
            known = models.names(self._agents.names, caller)
            agent = models.agent_of(given.model if given.model in known else models.NAME, self._agents.names, caller)
            async with self._agents.use(agent) as services:
                embedder = services.library.embedder if services.library is not None else None
                if embedder is not None and given.model not in (*known, embedder.name):
                    there = ", ".join((*known, embedder.name))
                    raise Fault(404, f"There is no such model. There are: {there}.", code="model_not_found")
                return Response(await embeddings.answer(given, embedder), media_type=JSON, headers=HEADERS)
        except (Fault, LimpetError, msgspec.MsgspecError, RecursionError) as error:
            return _refused(error, Chat())

    async def _models(self, request: Request) -> Response:
        anthropic = "anthropic-version" in request.headers
        try:
            caller = await self._caller(request, "read")
            known = models.names(self._agents.names, caller)
            wanted = str(request.path_params.get("model", ""))
            if not wanted:
                return Response(models.listed(known, anthropic=anthropic), media_type=JSON, headers=HEADERS)
            models.agent_of(wanted, self._agents.names, caller)
            return Response(models.one(wanted, anthropic=anthropic), media_type=JSON, headers=HEADERS)
        except (Fault, LimpetError) as error:
            return _refused(error, Messages() if anthropic else Chat())

    async def _document(self, request: Request) -> Response:
        try:
            self._access.check_place(request.headers)
        except Fault as fault:
            return _refused(fault, Chat())
        return Response(openapi.document(), media_type=JSON, headers=HEADERS)

    async def _caller(self, request: Request, scope: Scope) -> Caller:
        """Raises `Fault`."""
        caller = await self._access.caller(request.headers, request.client.host if request.client else "")
        caller.check(scope)
        return caller


def _refused(error: Exception, dialect: Dialect) -> Response:
    fault = _fault(error)
    headers: Mapping[str, str] = HEADERS
    if fault.status == 401:
        headers = {**headers, "WWW-Authenticate": "Bearer"}
    if fault.again:
        headers = {**headers, "Retry-After": str(fault.again)}
    # Clients would send again by themselves what is stored already, or what no repetition helps.
    headers = {**headers, "x-should-retry": "false"}
    return Response(dialect.fault(fault), fault.status, headers=dict(headers), media_type=JSON)


def _fault(error: Exception) -> Fault:
    if isinstance(error, Fault):
        return error
    if isinstance(error, LimpetError):
        return fault_of(error)
    said = "is nested too deeply" if isinstance(error, RecursionError) else f"cannot be used: {error}"
    return Fault(400, f"The request {said}.", code="invalid_request")
