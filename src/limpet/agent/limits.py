"""Limits of a turn: steps, time, money (or tokens where the price is unknown)."""

from __future__ import annotations

from msgspec import Struct

from limpet.types.ports import Clock
from limpet.types.usage import NO_USAGE, Usage


class Limits(Struct, frozen=True):
    """`dollars` bounds the cost of a turn; `tokens` bounds it where the price of the model is not known.

    The steps are nanobot's number, the money and the time are ours: nothing may run up a bill overnight.
    """

    steps: int = 200
    minutes: float = 30.0
    dollars: float = 1.0
    tokens: int = 2_000_000


class Budget:
    """What one turn has spent so far. `spent` is what it used before a crash."""

    def __init__(self, limits: Limits, clock: Clock, *, spent: Usage = NO_USAGE, local: bool = False) -> None:
        self._limits = limits
        self._clock = clock
        self._local = local
        self._began = clock.monotonic()
        self._steps = 0
        self._usage = spent
        self._unpriced = spent.total if spent.cost is None else 0
        self._warned = False

    def count(self, usage: Usage) -> None:
        """One more request was answered."""
        self._steps += 1
        self.spend(usage)

    def spend(self, usage: Usage) -> None:
        """A request beside the loop was answered: it costs, but is no step."""
        self._usage += usage
        self._unpriced += usage.total if usage.cost is None else 0

    def exceeded(self) -> str:
        """Which limit is reached, as the end of a sentence; empty while none is."""
        limits = self._limits
        if self._steps >= limits.steps:
            return f"{limits.steps} steps"
        if self._minutes() >= limits.minutes:
            return f"{limits.minutes:g} minutes"
        if self._usage.cost is not None and self._usage.cost >= limits.dollars * 1e6:
            return f"{limits.dollars:g} $"
        if not self._local and self._unpriced >= limits.tokens:
            return f"{limits.tokens:,} tokens (the price of this model is not known)"
        return ""

    def warning(self) -> str:
        """Said once, at 80 % of a limit; empty otherwise."""
        limits = self._limits
        share = max(
            self._steps / limits.steps,
            self._minutes() / limits.minutes,
            (self._usage.cost or 0) / (limits.dollars * 1e6),
        )
        if self._warned or not 0.8 <= share < 1:
            return ""
        self._warned = True
        return f"This turn has used {share:.0%} of its limits ({self._steps} steps, {self._minutes():.0f} min)."

    def _minutes(self) -> float:
        return (self._clock.monotonic() - self._began) / 60
