"""A model whose every request has its row in `usage`: reserved before it, settled with the turn or here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from limpet.llm.tokens import RunningEstimate
from limpet.types.event import Done, ModelEvent, Notice
from limpet.types.message import Request
from limpet.types.ports import Meter, Model
from limpet.types.profile import Profile
from limpet.types.usage import Usage

ANSWER = 8_192
"""Tokens an answer is taken to have at the most where nothing says it."""


class Metered:
    """Wraps one attempt of `model`: stands inside `Retrying`, so that each attempt is counted.

    A complete answer carries its reservation in `Done`, for the turn's commit to settle. A request that ends
    otherwise (error, stop, nobody listening any more) is settled as failed here.
    """

    def __init__(self, model: Model, *, meter: Meter) -> None:
        self._model = model
        self._meter = meter
        self._estimate = RunningEstimate()

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def close(self) -> None:
        await self._model.close()

    def _at_most(self, request: Request) -> int:
        """Micro-dollars the request may cost: nothing of it cached, the answer as long as it may be; 0 = not known."""
        price = self.profile.price
        if price is None:
            return 0
        read = self._estimate.request(request, factor=self.profile.token_factor)
        most = min(request.sampling.max_tokens or ANSWER, self.profile.max_output or ANSWER)
        return (read * max(price.input, price.cache_write) + most * price.output) // 1_000_000

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reservation, warning = await self._meter.reserve(request, self.profile, at_most=self._at_most(request))
        if warning:
            yield Notice(warning, "warning")
        handed_over = False
        try:
            async with aclosing(self._model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        handed_over = True
                        event = msgspec.structs.replace(event, reservation=reservation)
                    yield event
        finally:
            if not handed_over:
                # shielded: a stop must not leave the row open
                await asyncio.shield(self._meter.settle(reservation, Usage(), state="failed"))
