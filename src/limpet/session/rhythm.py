"""How fast the requests of a conversation follow each other: from its key and its log alone, so that it is no guess.

Where people come back within the hour, a provider is asked to keep the prefix for an hour; where they come back later,
keeping it for more than the steps of a turn would only cost. To write a prefix for an hour costs 2.0 and to read it
0.1 times the input, for five minutes 1.25: an hour pays when 40 % of the pauses beyond five minutes end within it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from limpet.session.keys import kind_of
from limpet.types.message import Rhythm

Pause = Literal["hour", "longer"]
BREATH, HOUR = 5 * 60_000, 60 * 60_000
"""Milliseconds up to which a pause is none, and up to which it is one of less than an hour."""
REMEMBERED = 8
LEAST = 3
"""Newest pauses that count, and how many there must be before they say anything."""
PAYS = 0.4


def pause_of(silence: int) -> Pause | None:
    """What kind of pause so many milliseconds between an answer and the next message are."""
    if silence <= BREATH:
        return None
    return "hour" if silence <= HOUR else "longer"


def rhythm_of(key: str, pauses: Collection[Pause]) -> Rhythm:
    """The rhythm of the conversation under `key` with these newest pauses. Nobody talks to jobs, hooks and helpers."""
    if kind_of(key) in ("cron", "hook", "subagent"):
        return "quick"
    within = sum(pause == "hour" for pause in pauses)
    return "quick" if len(pauses) >= LEAST and within < PAYS * len(pauses) else "slow"
