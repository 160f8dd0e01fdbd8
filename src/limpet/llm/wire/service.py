"""What all wires over HTTP share: one request to one service, its answer as events, and what its failures teach.

A request that is refused because of a field of ours is sent again at once without it, and never with it again. Every
request that fails leaves a trace.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import ClassVar, NamedTuple

from limpet.errors import ContextOverflowError, ModelError, ParameterError, StalledError
from limpet.llm.exchange import Exchange, Tally
from limpet.llm.http import Answer, Http
from limpet.llm.learned import lesson_of, taught
from limpet.llm.names import key_of
from limpet.llm.prefix import PrefixCache
from limpet.llm.schema import Offers
from limpet.types.event import ModelEvent, Notice
from limpet.types.message import Request
from limpet.types.ports import Blobs, Lessons, Traces
from limpet.types.profile import Profile

log = logging.getLogger(__name__)

MOST_LESSONS = 4
"""Fields that one request may be sent again without."""


class Witness(NamedTuple):
    """Where failures are remembered; by default nowhere."""

    lessons: Lessons | None = None
    traces: Traces | None = None


NOBODY = Witness()


class Service(ABC):
    """A `Model` at one service. A wire says how a request is written, where it goes, and how the answer is read."""

    key_header: ClassVar[str] = ""
    """The wire's usual header for the key; empty: a bearer token."""

    def __init__(
        self,
        profile: Profile,
        *,
        key: str,
        http: Http,
        prefix: PrefixCache | None = None,
        blobs: Blobs | None = None,
        witness: Witness = NOBODY,
    ) -> None:
        """`key` may be empty for services that need none."""
        self._profile = profile
        self._headers = key_of(profile, key, header=self.key_header)
        self._http = http
        self._prefix = prefix or PrefixCache()
        self._blobs = blobs
        self._offers = Offers(profile)
        self._lessons, self._traces = witness
        if self._lessons is not None:
            known = self._lessons.known(profile)
            self._profile = taught(profile, refused=known.refused, window=known.window)

    @property
    def profile(self) -> Profile:
        return self._profile

    async def close(self) -> None:
        await self._http.close()

    async def stream(self, request: Request, tally: Tally | None = None) -> AsyncGenerator[ModelEvent, None]:
        for notice in self._offers.news(request.tools):
            yield notice
        for sent in range(MOST_LESSONS + 1):
            exchange = Exchange(self._encode(request), tally or Tally())
            begun = False
            try:
                url, headers = await self._target(exchange.body)
                async with (
                    self._http.post(url, exchange.body, headers=headers, exchange=exchange) as answer,
                    aclosing(self._read(answer, request)) as events,
                ):
                    async for event in events:
                        begun = True
                        yield event
                return
            except ModelError as error:
                if not isinstance(error, StalledError) and not exchange.tally.count().total:
                    exchange.tally.owed = False  # it failed before it did anything
                await self._keep_trace(exchange, error, session=request.session)
                told = await self._learn(exchange, error)
                if begun or not told or sent == MOST_LESSONS:
                    raise
            yield Notice(told)

    async def _keep_trace(self, exchange: Exchange, error: ModelError, *, session: str) -> None:
        if self._traces is not None:
            from limpet.llm.traced import trace_of  # only for failures

            await self._traces.keep(trace_of(exchange, error, session=session, profile=self._profile))

    async def _learn(self, exchange: Exchange, error: ModelError) -> str:
        """Remember what `error` says about the service; a sentence for the owner when the request can be sent anew."""
        match error:
            case ContextOverflowError(limit=limit) if limit:
                return await self._learn_window(limit, error)
            case ParameterError():
                return await self._learn_field(exchange, error)
            case _:
                return ""

    async def _learn_window(self, limit: int, error: ModelError) -> str:
        profile = taught(self._profile, refused=self._profile.refused, window=limit)
        if profile != self._profile:
            self._profile = profile
            log.warning("%s has a window of %d tokens", profile.reference, limit)
            if self._lessons is not None:
                await self._lessons.has_window(profile, limit, reason=str(error))
        return ""

    async def _learn_field(self, exchange: Exchange, error: ParameterError) -> str:
        old = self._profile
        field = lesson_of(error, exchange.body, old)
        if not field or field in old.refused:
            return ""
        self._profile = taught(old, refused=(*old.refused, field))
        self._prefix = PrefixCache()  # messages may be written otherwise now
        told = f"{old.reference} does not take `{field}`: from now on it is asked without. It said: {error}"
        log.warning(told)
        if self._lessons is not None:
            await self._lessons.refuses(old, field, reason=str(error))
        return told

    @abstractmethod
    def _encode(self, request: Request) -> list[bytes]:
        """The body, in parts."""

    @abstractmethod
    async def _target(self, body: Sequence[bytes]) -> tuple[str, dict[str, str]]:
        """The address, and the headers that go there."""

    @abstractmethod
    def _read(self, answer: Answer, request: Request) -> AsyncGenerator[ModelEvent, None]:
        """The events of an answer, `Done` last. Raises `ModelError`."""
