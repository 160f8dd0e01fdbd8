"""Which passages answer a question best: the two kinds of score on one scale, and what the passages' places say.

Measured on public conversations (`python -m bench memory`): scaling both sides to 0 to 1 and adding them beats ranks
and fixed weights on raw scores; a passage gains by the best of its neighbours, by being of the day or the person that
the question names. Age takes nothing away: old is not less true.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from limpet.memory.dates import Days

NEIGHBOUR, NEIGHBOUR_OF_LONG = 0.4, 0.15
"""Of the better neighbour's score, what a passage gains; one that is long already holds what is around it."""
LONG = 100
"""Words from which a passage is long."""
SPEAKER = 0.25
"""Of the best score, what a passage gains that the named person said."""
DATE = 0.5
"""Of the best score, what a passage of the named days gains; it fades over the `AFTER` days after them."""
AFTER = 14
TIME = 0.2
"""Of the best score, what a passage gains that tells a time, when the question asks for one."""
LEAST, MORE = 0.3, 0.5
"""What words count for beside vectors, and what they count for more when the best hit holds all of the question."""


class Place(Struct, frozen=True):
    """Where a passage stands: at `position` of the `group` (a file, a conversation), said by `speaker` on a `day`
    (days since 1970, -1 = unknown). `timed`: it tells a time; `long`: it has `LONG` words or more."""

    group: str
    position: int
    speaker: str = ""
    day: int = -1
    timed: bool = False
    long: bool = False


class Asked(Struct, frozen=True):
    """What a question names beside its words: known `speakers`, `days`, and whether it asks for a time."""

    speakers: frozenset[str] = frozenset()
    days: Days | None = None
    when: bool = False


def scaled(scores: Mapping[int, float], *, low: float | None = None) -> dict[int, float]:
    """1 for the highest, 0 for the lowest, or for `low`; all 1 when they are alike."""
    if not scores:
        return {}
    low, high = min(scores.values()) if low is None else low, max(scores.values())
    if high <= low:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def fused(words: Mapping[int, float], vectors: Mapping[int, float], *, covered: float) -> dict[int, float]:
    """Both, weighed by how much of the question the best hit of the words holds (`covered`, 0 to 1)."""
    if not vectors:
        return dict(words)
    weight = LEAST + MORE * covered
    names = words.keys() | vectors.keys()
    return {name: weight * words.get(name, 0.0) + (1 - weight) * vectors.get(name, 0.0) for name in names}


def placed(scores: Mapping[int, float], places: Mapping[int, Place], asked: Asked) -> dict[int, float]:
    """The scores with what neighbours, and what the question names beside its words, add.

    `places` holds those of all passages with a score, and of whatever else may gain one: their neighbours, and the
    passages of the named days.
    """
    spots = {(place.group, place.position): name for name, place in places.items()}
    gained: dict[int, float] = {}
    for name, place in places.items():
        beside = (spots.get((place.group, place.position + step), -1) for step in (-1, 1))
        share = NEIGHBOUR_OF_LONG if place.long else NEIGHBOUR
        gained[name] = scores.get(name, 0.0) + share * max(scores.get(other, 0.0) for other in beside)
    best = max(gained.values(), default=0.0) or 1.0  # where nothing matches, a named day finds alone
    for name, place in places.items():
        if len(asked.speakers) == 1 and place.speaker in asked.speakers:
            gained[name] += SPEAKER * best
        if asked.when and place.timed and name in scores:
            gained[name] += TIME * best
        if asked.days is not None and place.day >= 0:
            gained[name] += DATE * best * asked.days.nearness(place.day, after=AFTER)
    return {name: score for name, score in gained.items() if score > 0}
