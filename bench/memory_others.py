"""How others rank, from their published formulas: for comparison in the same run, over the same passages.

The words are those of SQLite's `unicode61` as theirs are, the vectors those of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import apsw

from bench.memory_data import Record

Scores = dict[int, float]
LEG = 40
"""Candidates of each side in the merge of OpenClaw: a multiple of its results."""
HALF_LIFE = 30.0
"""Days after which its default halves a score."""
SHOWN = 20
"""Of which so many are chosen."""
DIVERSITY = 0.7
"""Lambda of its MMR."""


class Others:
    """Rankings over `records`, whose ids count from 1."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self._words = [frozenset(_words(record.text)) for record in records]
        self._database = apsw.Connection(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'unicode61')")
        with self._database:
            self._database.executemany(
                "INSERT INTO words VALUES (?)", ((f"{record.context}{record.text}",) for record in records)
            )

    def rankings(self, question: str, cosines: Mapping[int, float], today: date) -> Mapping[str, Sequence[int]]:
        """The passages by each formula, best first."""
        every, some = self._matching(question, " AND "), self._matching(question, " OR ")
        found = {"others: all words": every, "others: any word": some}
        if cosines:
            near = dict(sorted(cosines.items(), key=lambda one: -one[1])[:LEG])
            merged = _merged(near, dict(list(some.items())[:LEG]))
            decayed = {name: score * self._decay(name, today) for name, score in merged.items()}
            found["others: vectors"] = dict(cosines)
            found["others: .7 vectors + .3 words"] = merged
            found["others: min-max halves"] = _halves(cosines, some)
            found["others: rank fusion"] = _rank_fusion(cosines, some)
            diverse = self._diverse(decayed)
            return {**{name: _order(scores) for name, scores in found.items()}, "others: decay and MMR": diverse}
        return {name: _order(scores) for name, scores in found.items()}

    def _matching(self, question: str, between: str) -> Scores:
        words = list(dict.fromkeys(_words(question)))
        if not words:
            return {}
        rows = self._database.execute(
            "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT 1000",
            (between.join(f'"{word}"' for word in words),),
        )
        return {int(name): float(score) for name, score in rows}

    def _decay(self, name: int, today: date) -> float:
        day = self._records[name - 1].day
        return 0.5 ** ((today - day).days / HALF_LIFE) if day else 1.0

    def _diverse(self, scores: Scores) -> list[int]:
        """Maximal marginal relevance by the words that texts share."""
        left, chosen = dict(scores), list[int]()
        high = max(left.values(), default=1.0) or 1.0
        while left and len(chosen) < SHOWN:
            best = max(
                left,
                key=lambda name: (
                    DIVERSITY * left[name] / high
                    - (1 - DIVERSITY) * max((self._alike(name, one) for one in chosen), default=0.0)
                ),
            )
            chosen.append(best)
            del left[best]
        return chosen

    def _alike(self, one: int, other: int) -> float:
        a, b = self._words[one - 1], self._words[other - 1]
        return len(a & b) / (len(a | b) or 1)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _order(scores: Scores) -> list[int]:
    return sorted(scores, key=lambda name: (-scores[name], name))


def _merged(near: Scores, words: Scores) -> Scores:
    """.7 of the cosine and .3 of the words' score brought below 1."""
    names = near.keys() | words.keys()
    text: Callable[[int], float] = lambda name: words.get(name, 0.0) / (1 + words.get(name, 0.0))  # noqa: E731
    return {name: 0.7 * near.get(name, 0.0) + 0.3 * text(name) for name in names}


def _halves(near: Mapping[int, float], words: Scores) -> Scores:
    a, b = _scaled(near), _scaled(words)
    return {name: a.get(name, 0.0) + b.get(name, 0.0) for name in a.keys() | b.keys()}


def _scaled(scores: Mapping[int, float]) -> Scores:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {name: (score - low) / (high - low) if high > low else 1.0 for name, score in scores.items()}


def _rank_fusion(near: Mapping[int, float], words: Scores) -> Scores:
    found: Scores = {}
    for scores in (dict(near), words):
        for rank, name in enumerate(_order(scores)):
            found[name] = found.get(name, 0.0) + 1 / (60 + rank + 1)
    return found
