"""A model whose every request has its row in `usage`: reserved before it, settled with the turn or here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from limpet.types.event import Done, ModelEvent
from limpet.types.message import Request
from limpet.types.ports import Meter, Model
from limpet.types.profile import Profile
from limpet.types.usage import Usage


class Metered:
    """Wraps one attempt of `model`: stands inside `Retrying`, so that each attempt is counted.

    A complete answer carries its reservation in `Done`, for the turn's commit to settle. A request that ends
    otherwise (error, stop, nobody listening any more) is settled as failed here.
    """

    def __init__(self, model: Model, *, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    @property
    def profile(self) -> Profile:
        return self._model.profile

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        reservation = await self._meter.reserve(request, self.profile)
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
