"""From hits to what is shown: enough of the question, nothing twice, neighbours as one, no source alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from msgspec import Struct, structs

from limpet.memory.index import EVERYTHING, Hit, Index, Passage, Within
from limpet.memory.words import indexed

MIN_SCORE = 0.35
LOOKED_AT = 40
"""Hits of which a search picks what it shows."""
ALIKE = 0.85
"""Share of the words of two texts that are the same, from which the second is not shown."""
QUOTA = 2 / 3
"""Share of what is shown that one source may take while the other has something too."""
JOINED = 3
"""Passages that are shown as one at most."""

_WORD = re.compile(r"[a-z0-9]+")


class Wanted(Struct, frozen=True):
    """How many results at most, and the least share of the question that one has to hold; `by_day`: or to be of the
    day that it names."""

    most: int = 6
    min_score: float = MIN_SCORE
    within: Within = EVERYTHING
    by_day: bool = True


class Result(Struct, frozen=True):
    """Neighbouring passages that answer together, in their order. `share` and `score` are those of the best one."""

    passages: tuple[Passage, ...]
    share: float
    score: float

    @property
    def first(self) -> Passage:
        return self.passages[0]

    @property
    def name(self) -> str:
        """`memory/2026-05-07.md:3-5`, or a place in a session that `session_search` takes for an anchor."""
        origin, last = self.first.origin, self.passages[-1].origin.last
        if origin.source == "session":
            return f"{self.first.place.group}:{origin.first}"
        return f"{origin.path}:{origin.first}" + (f"-{last}" if last > origin.first else "")

    @property
    def text(self) -> str:
        """What stands there; lines that two passages share once."""
        lines: list[str] = []
        end = 0
        for passage in self.passages:
            own = passage.text.split("\n")
            if passage.origin.source == "memory":
                own = own[max(0, end - passage.origin.first + 1) :]
                end = passage.origin.last
            else:
                own[0] = f"{passage.place.speaker}: {own[0]}"
            lines += own
        return "\n".join(lines)

    @property
    def is_external(self) -> bool:
        return any(one.origin.trust == "external" for one in self.passages)


def find(
    index: Index, question: str, wanted: Wanted, *, today: date, cosines: Mapping[int, float] | None = None
) -> list[Result]:
    """The results for `question`, best first."""
    if wanted.most < 1:
        return []
    hits = index.search(question, today=today, cosines=cosines, within=wanted.within, shares=LOOKED_AT)
    hits = [hit for hit in hits[:LOOKED_AT] if (hit.shown if wanted.by_day else hit.share) >= wanted.min_score]
    found = index.passages(hit.id for hit in hits)
    kept = [(hit, found[hit.id]) for hit in hits if hit.id in found and wanted.within.holds(found[hit.id])]
    return _picked(_results(kept, wanted.most), wanted.most)


def _results(hits: Sequence[tuple[Hit, Passage]], most: int) -> list[Result]:
    """The first results, `most` of each source, without what says nearly what a better one says; neighbours as one."""
    results: list[Result] = []
    words: list[frozenset[str]] = []
    counts = {"memory": 0, "session": 0}
    for hit, passage in hits:
        source = passage.origin.source
        near = next((at for at, one in enumerate(results) if len(one.passages) < JOINED and _beside(one, passage)), -1)
        if near < 0 and counts[source] >= most:
            continue
        own = _words(passage.text)
        if any(_alike(own, other) for other in words):
            continue
        words.append(own)
        if near < 0:
            counts[source] += 1
            results.append(Result((passage,), hit.share, hit.score))
        else:
            result = results[near]
            both = sorted((*result.passages, passage), key=lambda one: one.place.position)
            results[near] = structs.replace(result, passages=tuple(both), share=max(result.share, hit.share))
    return results


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()) if text.isascii() else indexed(text).split())


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    fewer, more = sorted((len(one), len(other)))
    return bool(one) and fewer >= ALIKE * more and len(one & other) >= ALIKE * len(one | other)


def _beside(result: Result, passage: Passage) -> bool:
    first, last, place = result.first.place, result.passages[-1].place, passage.place
    return place.group == first.group and place.position in (first.position - 1, last.position + 1)


def _picked(results: Sequence[Result], most: int) -> list[Result]:
    """The first `most`, but no source takes more than its quota while the other has something."""
    quota = max(1, round(most * QUOTA))
    counts = {"memory": 0, "session": 0}
    picked: list[Result] = []
    left: list[Result] = []
    for result in results:
        source = result.first.origin.source
        if counts[source] < quota:
            counts[source] += 1
            picked.append(result)
        else:
            left.append(result)
    picked = picked[:most]
    picked += left[: most - len(picked)]
    return sorted(picked, key=lambda one: -one.score)
