"""What a request cost. Tokens are whole numbers, money is in micro-dollars (1,000,000 = 1 $)."""

from __future__ import annotations

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one model request.

    `input` counts what was neither read from nor written to a cache, `output` includes `reasoning`.
    `cost` is None when the price of the model is not known.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: int | None = None

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0) + (other.cost or 0)
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cost=cost,
        )


NO_USAGE = Usage()
