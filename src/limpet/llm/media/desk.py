"""One request to a media endpoint: the same retry, failover, metering and deadlines as for any model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct, structs

from limpet.errors import InputError, UpstreamError
from limpet.llm.classify import error_inside
from limpet.llm.failover import Candidate, Failover
from limpet.llm.http import Http
from limpet.llm.names import address_of, key_of
from limpet.llm.profiles import services
from limpet.llm.retry import Patience, Retrying
from limpet.types.event import Done, ModelEvent, Notice
from limpet.types.message import AssistantMessage, Request
from limpet.types.ports import Clock, Emit, Meter, Rests
from limpet.types.profile import Profile
from limpet.types.usage import Usage

T = TypeVar("T")
LARGEST_ANSWER = 64 << 20
"""Bytes of sound or picture that are taken in one answer."""


class Endpoint(Struct, frozen=True):
    """A model of a service and one key for it. `credential` names the key, never its value."""

    profile: Profile
    key: str
    http: Http
    credential: str = ""


class Errand(Struct, frozen=True):
    """What is sent. `at_most` is what it may cost in micro-dollars, 0 = not known; `session` pays for it."""

    path: str
    body: Sequence[bytes]
    content_type: str = "application/json"
    at_most: int = 0
    session: str = ""


class Desk:
    """Runs errands at the first of `endpoints` that can; the others stand in when a key or service fails."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        meter: Meter,
        rests: Rests,
        clock: Clock,
        emit: Emit,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
    ) -> None:
        self._endpoints = tuple(endpoints)
        self._meter = meter
        self._rests = rests
        self._clock = clock
        self._emit = emit
        self._patience = patience

    @property
    def profile(self) -> Profile:
        return self._endpoints[0].profile

    async def run(self, errand: Errand, read: Callable[[bytes], tuple[T, Usage]]) -> T:
        """What `read` makes of the answer, which it gives with its usage. Raises `ModelError`, `BudgetError`."""
        attempts = [_Attempt(endpoint, errand, read=read, meter=self._meter) for endpoint in self._endpoints]
        candidates = [
            Candidate(Retrying(attempt, patience=self._patience), endpoint.credential)
            for attempt, endpoint in zip(attempts, self._endpoints, strict=True)
        ]
        model = candidates[0].model
        if len(candidates) > 1:
            model = Failover(candidates, rests=self._rests, clock=self._clock)
        request = Request(session=errand.session, system="", tools=(), messages=())
        async with aclosing(model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Notice):
                    self._emit(event)
        for attempt in attempts:
            for result in attempt.results:
                return result
        raise UpstreamError("The answer ended without a result.", provider=self.profile.provider)

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.http.close()


class _Attempt(Generic[T]):
    """An errand in the clothes of a `Model`, so that it can be retried and replaced as one. `results` is what came."""

    def __init__(
        self, endpoint: Endpoint, errand: Errand, *, read: Callable[[bytes], tuple[T, Usage]], meter: Meter
    ) -> None:
        self._endpoint = endpoint
        self._errand = errand
        self._read = read
        self._meter = meter
        self.results: list[T] = []

    @property
    def profile(self) -> Profile:
        return self._endpoint.profile

    async def close(self) -> None:
        await self._endpoint.http.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        own = _is_own(self.profile)
        at_most = 0 if own else self._errand.at_most
        reservation, warning = await self._meter.reserve(request, self.profile, at_most=at_most)
        if warning:
            yield Notice(warning, "warning")
        usage, done = Usage(), False
        try:
            result, usage = self._read(await _post(self._endpoint, self._errand))
            usage = structs.replace(usage, cost=0) if own else usage
            self.results.append(result)
            done = True
        finally:  # shielded: a stop must not leave the row open
            state = "done" if done else "failed"
            await asyncio.shield(self._meter.settle(reservation, usage, state=state))
        yield Done(AssistantMessage(content=(), producer=self.profile.producer, usage=usage))


def _is_own(profile: Profile) -> bool:
    """Whether it is a server of one's own, which is free: the prices are those of services."""
    return profile.local and not services().get(profile.provider, services()["custom"]).hosts


async def _post(endpoint: Endpoint, errand: Errand) -> bytes:
    profile = endpoint.profile
    own = profile.path.replace("/chat/completions", errand.path)
    url = address_of(structs.replace(profile, path=own), errand.path)
    headers = {"Content-Type": errand.content_type, "Accept": "*/*", **key_of(profile, endpoint.key)}
    parts: list[bytes] = []
    size = 0
    async with endpoint.http.post(url, errand.body, headers=headers) as answer:
        while chunk := await answer.read():
            answer.progress()
            parts.append(chunk)
            if (size := size + len(chunk)) > LARGEST_ANSWER:
                raise UpstreamError(f"the answer is over {LARGEST_ANSWER >> 20} MB", provider=profile.provider)
    return b"".join(parts)


class _Failure(Struct):
    error: object = None


def decoded(body: bytes, kind: type[T], *, provider: str) -> T:
    """The JSON answer as `kind`. Raises `UpstreamError` for anything else, also an error said with a 200."""
    try:
        if error := msgspec.json.decode(body, type=_Failure).error:
            raise error_inside(error, provider=provider)
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise strange(body, provider=provider) from error


def strange(body: bytes, *, provider: str) -> UpstreamError:
    """The error for an answer that is not what was asked for."""
    what = "HTML" if body.lstrip()[:1] == b"<" else "nothing" if not body else "something else than was asked for"
    hint = "The address (base_url) may be wrong, or a proxy or login page answers in its place."
    return UpstreamError(f"the service answered with {what}", provider=provider, status=200, hint=hint)


def check_wire(profile: Profile, what: str) -> None:
    """Raises `InputError` when the provider of `profile` has no OpenAI-compatible endpoints."""
    if profile.wire not in ("openai_chat", "openai_responses"):
        raise InputError(
            f"{profile.reference}: {what} needs an OpenAI-compatible service; {profile.provider} is asked another way.",
            hint="Choose a model such as one of openai/, groq/ or a server of your own.",
        )
