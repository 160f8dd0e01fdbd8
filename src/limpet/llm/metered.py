"""A model whose every request has its row in `usage`: reserved before it, settled with the turn or here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from msgspec import structs

from limpet.llm.assemble import cost_of
from limpet.llm.exchange import Tally
from limpet.llm.tokens import RunningEstimate
from limpet.types.event import Done, ModelEvent, Notice
from limpet.types.message import Request
from limpet.types.ports import Meter, Model
from limpet.types.profile import Profile
from limpet.types.usage import NO_USAGE, Usage

ANSWER = 8_192
"""Tokens an answer is taken to have at the most where nothing says it."""


class Countable(Model, Protocol):
    """Called here; provided by the wires: a model that says while it answers what that has used so far."""

    def stream(self, request: Request, tally: Tally | None = None) -> AsyncGenerator[ModelEvent, None]:
        """As every model, and `tally` is kept up to date."""
        ...


class Metered:
    """Wraps one attempt of `model`: stands inside `Retrying`, so that each attempt is counted.

    A complete answer carries its reservation in `Done`, for the turn's commit to settle. A request that ends
    otherwise (error, stop, nobody listening any more) is settled here: with nothing when the service refused it, else
    with what it said so far, and estimates for the rest.
    """

    def __init__(self, model: Countable, *, meter: Meter) -> None:
        self._model = model
        self._meter = meter
        self._estimate = RunningEstimate()

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def close(self) -> None:
        await self._model.close()

    def _expected(self, request: Request) -> Usage:
        """The input of a request, none of it cached, and no answer."""
        read = self._estimate.request(request, factor=self.profile.token_factor)
        return cost_of(Usage(input=read), self.profile)

    def _at_most(self, request: Request, *, read: int) -> int:
        """Micro-dollars the request may cost: nothing of it cached, the answer as long as it may be; 0 = not known."""
        price = self.profile.price
        if price is None:
            return 0
        most = min(request.sampling.max_tokens or ANSWER, self.profile.max_output or ANSWER)
        return (read * max(price.input, price.cache_write) + most * price.output) // 1_000_000

    def _used(self, tally: Tally, expected: Usage) -> Usage:
        """What a request has used that did not come to its end."""
        if not tally.owed:
            return NO_USAGE
        told = tally.count()
        if not told.input + told.cache_read + told.cache_write:
            told = structs.replace(told, input=expected.input)
        return cost_of(told, self.profile)

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        expected = self._expected(request)
        most = self._at_most(request, read=expected.input)
        name, warning = await self._meter.reserve(request, self.profile, at_most=most, expected=expected)
        if warning:
            yield Notice(warning, "warning")
        tally = Tally()
        handed_over = False
        try:
            async with aclosing(self._model.stream(request, tally)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        handed_over = True
                        event = structs.replace(event, reservation=name)
                    yield event
        finally:
            if not handed_over:
                used = self._used(tally, expected)
                settled = self._meter.settle(name, used, state="failed", estimated=bool(used.total))
                await asyncio.shield(settled)  # a stop must not leave the row open
