"""Room: how much of a model's window a conversation may fill, and what is kept when it is full (DESIGN 7).

All figures scale with the window, so that one of 4,000 tokens works by the same rules as one of a million.
"""

from __future__ import annotations

from msgspec import Struct

UNKNOWN_WINDOW = 128_000
"""Tokens that are assumed where nobody tells the window."""
CHARACTERS = 3
"""Characters that a token is taken for where text is cut: rather too few than too many."""


class Room(Struct, frozen=True):
    """Figures of one window, all in tokens except `prunable`, which is in characters.

    `reserve` stays free for the answer, `keep` is what a compaction leaves as it is, `summary` the longest summary.
    Results are shortened from `soft` on and cleared from `hard` on, when at least `prunable` can be cleared.
    """

    window: int
    reserve: int
    keep: int
    summary: int
    soft: int
    hard: int
    prunable: int

    @property
    def limit(self) -> int:
        """Tokens that a request may have."""
        return self.window - self.reserve


def room_of(window: int) -> Room:
    """The figures for a window of so many tokens, 0 = not known."""
    window = window or UNKNOWN_WINDOW
    reserve = max(min(16_384, window // 5), min(2_000, window * 15 // 100))
    return Room(
        window=window,
        reserve=reserve,
        keep=min(20_000, window * 30 // 100),
        summary=min(4_000, reserve * 4 // 5),
        soft=window * 30 // 100,
        hard=window * 50 // 100,
        prunable=min(50_000, window * CHARACTERS // 4),
    )
