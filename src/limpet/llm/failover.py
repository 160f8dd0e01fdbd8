"""Failover: several ways to an answer, tried in order, and those that just failed are left alone for a while.

A candidate is one model with one credential. What a failure says decides what rests: a refused key rests alone, so the
next key of the provider is tried; a rate limit rests the credential, a failing service its whole provider. Rests are
kept in the store, so a restart does not begin by knocking at closed doors. Nothing is silent: each step is a notice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec import Struct

from limpet.errors import (
    BillingError,
    CredentialError,
    ModelError,
    NoCandidateError,
    RateLimitError,
    RequestError,
    RetryableError,
    UnreachableError,
)
from limpet.types.event import AnswerReset, Done, ModelEvent, Notice, TextDelta, ThinkingDelta
from limpet.types.message import Request
from limpet.types.ports import Clock, Model, Rests
from limpet.types.profile import Profile

RATE_LIMIT = 60.0
"""Seconds a credential rests after a rate limit that names no time."""
REFUSED_KEY = 300.0
"""Seconds a credential rests after it was refused, or has no money left."""
FAILING = 30.0
"""Seconds a provider rests after it failed or could not be reached."""


class Candidate(Struct, frozen=True):
    """One way to an answer. `credential` names the key (never its value): `provider`, or `provider#2` and so on."""

    model: Model
    credential: str


CHOSEN = (
    "You chose this model, so no other one answers for it unasked. Fallbacks: {others}. Say /model {first} and then "
    "/retry to go on with one; models.replace_chosen = true lets me do that myself."
)


class Failover:
    """A `Model` out of several. `profile` is that of the first: prompts are made for it."""

    def __init__(
        self, candidates: Sequence[Candidate], *, rests: Rests, clock: Clock, stand_ins: Sequence[str] = ()
    ) -> None:
        """`stand_ins` are models that may not stand in by themselves: they are offered when all candidates fail."""
        self._candidates = tuple(candidates)
        self._stand_ins = tuple(stand_ins)
        self._rests = rests
        self._clock = clock

    @property
    def profile(self) -> Profile:
        return self._candidates[0].model.profile

    async def close(self) -> None:
        for candidate in self._candidates:
            await candidate.model.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        failures: list[str] = []
        last: ModelError | None = None
        for candidate in self._candidates:
            name = candidate.model.profile.reference
            if resting := self._resting(candidate):
                failures.append(f"{name}: {resting}")
                continue
            if failures:
                yield Notice(f"{failures[-1]}. Asking {name} instead.", "warning")
            shown = False
            try:
                async with aclosing(candidate.model.stream(request)) as events:
                    async for event in events:
                        shown = shown or isinstance(event, TextDelta | ThinkingDelta)
                        yield event
                        if isinstance(event, Done):
                            return
                return
            except ModelError as error:
                if not await self._rest(candidate, error):
                    raise
                last = error
                failures.append(f"{name}: {error}")
            if shown:
                yield AnswerReset(failures[-1])
        hint = "What rests is tried again by itself. /model provider/model chooses another one."
        if self._stand_ins:
            hint = CHOSEN.format(others=", ".join(self._stand_ins), first=self._stand_ins[0])
        if last is not None and len(self._candidates) == 1:
            if self._stand_ins:
                last.hint = f"{last.hint}\n{hint}".strip()
            raise last
        raise NoCandidateError(
            "No model could answer:\n" + "\n".join(f"- {failure}" for failure in failures), hint=hint
        )

    def _resting(self, candidate: Candidate) -> str:
        """Why a candidate is not tried now; empty when it may be."""
        now = self._clock.now()
        for name in (candidate.credential, _service(candidate)):
            until, reason = self._rests.look(name)
            if until > now:
                return f"rests for another {(until - now + 999) // 1000} s ({reason})"
        return ""

    async def _rest(self, candidate: Candidate, error: ModelError) -> bool:
        """Let rest what the error says has failed; False when another candidate would not help."""
        match error:
            case RateLimitError(retry_after=asked):
                name, seconds = candidate.credential, asked if asked is not None else RATE_LIMIT
            case CredentialError() | BillingError():
                name, seconds = candidate.credential, REFUSED_KEY
            case RetryableError() | UnreachableError():
                name, seconds = _service(candidate), FAILING
            case RequestError(status=404):
                return True  # this model is not there; others of the provider may be
            case _:
                return False
        if len(self._candidates) > 1:
            await self._rests.rest(name, until=self._clock.now() + round(seconds * 1000), reason=str(error))
        return True


def _service(candidate: Candidate) -> str:
    return f"{candidate.model.profile.provider}:service"
