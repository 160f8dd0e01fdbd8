"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio


class FakeClock:
    """A `Clock` at `start` (UTC milliseconds). `sleep` returns at once and moves the clock instead."""

    def __init__(self, start: int = 1_750_000_000_000) -> None:
        self._start = start
        self._passed = 0.0
        self.slept: list[float] = []

    def now(self) -> int:
        return self._start + round(self._passed * 1000)

    def monotonic(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._passed += seconds

    async def sleep(self, seconds: float) -> None:
        """What a component takes in place of `asyncio.sleep`; `slept` remembers how long."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))
        await asyncio.sleep(0)
