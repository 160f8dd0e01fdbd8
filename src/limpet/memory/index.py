"""The search index over passages: a SQLite file that can be thrown away and made anew from what it was made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import log

import apsw
from msgspec import Struct, convert, structs

from limpet.memory.dates import Days, asks_when, named_days, tells_when
from limpet.memory.rank import AFTER, LONG, Asked, Place, fused, placed, scaled
from limpet.memory.words import Term, indexed, terms
from limpet.store.sql import Connection

CANDIDATES = 200
"""Passages of each kind of search that go on to the ranking."""
WEAK = 0.2
"""What a single character out of a longer run counts for, beside a whole word."""
COMMON = 0.5
"""Share of the passages in which a term may stand that still tells something, when rarer ones are asked for too."""
_SCHEMA = """
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    grp TEXT NOT NULL,
    position INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    day INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    long INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX passages_place ON passages (grp, position);
CREATE INDEX passages_day ON passages (day);
CREATE VIRTUAL TABLE words USING fts5 (
    body, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
"""


class Passage(Struct, frozen=True):
    """What is found as one: its text, and `context` that is searched with it but not shown."""

    text: str
    place: Place
    context: str = ""


class Hit(Struct, frozen=True):
    """A passage (by id) that answers. `score` orders; `share` (0 to 1) says how much of the question it holds."""

    id: int
    score: float
    share: float


def telling(known: Sequence[tuple[Term, int]], count: int) -> list[Term]:
    """The terms to search for, of `known` with the number of `count` passages that hold them: those that occur, and
    those in very many only if all are."""
    there = [(term, number) for term, number in known if number]
    rare = [term for term, number in there if number <= max(1, COMMON * count)]
    return rare or [term for term, _ in there]


class Index:
    """Passages in the database at `path`."""

    def __init__(self, path: str = ":memory:") -> None:
        self._database = apsw.Connection(path)
        self._connection.execute(_SCHEMA)

    @property
    def _connection(self) -> Connection:
        return self._database

    def add(self, passages: Iterable[Passage]) -> None:
        with self._database:
            for passage in passages:
                place = structs.replace(
                    passage.place, timed=tells_when(passage.text), long=len(passage.text.split()) >= LONG
                )
                self._connection.execute(
                    "INSERT INTO passages (grp, position, speaker, day, timed, long, text)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (*structs.astuple(place), passage.text),
                )
                self._connection.execute(
                    "INSERT INTO words (rowid, body) VALUES (last_insert_rowid(), ?)",
                    (indexed(f"{passage.context}\n{passage.text}"),),
                )

    def search(self, question: str, *, today: date, cosines: Mapping[int, float] | None = None) -> list[Hit]:
        """The passages that answer `question` best, best first. `cosines` are those of its vector, if it has one."""
        count = self._number("SELECT COUNT(*) FROM passages")
        known = self._counted(terms(question))
        found = self._matching(telling(known, count))
        covered = self._covered(max(found, key=found.__getitem__), known, count) if found else 0.0
        near = dict(sorted((cosines or {}).items(), key=lambda one: -one[1])[:CANDIDATES])
        scores = fused(
            scaled(found, low=0.0), scaled(near, low=min(cosines.values()) if cosines else None), covered=covered
        )
        asked = Asked(self._named(question), named_days(question, today), asks_when(question))
        ranked = placed(scores, self._places(scores, asked.days), asked)
        return [Hit(name, score, 0.0) for name, score in sorted(ranked.items(), key=lambda one: (-one[1], one[0]))]

    def _counted(self, asked: Sequence[Term]) -> list[tuple[Term, int]]:
        """The terms with the number of passages that hold them."""
        statement = "SELECT COUNT(*) FROM words WHERE words MATCH ?"
        return [(term, self._number(statement, term.match)) for term in asked]

    def _matching(self, asked: Sequence[Term]) -> dict[int, float]:
        """BM25 of the best passages, higher is better."""
        if not asked:
            return {}
        rows = self._connection.execute(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (" OR ".join(term.match for term in asked), CANDIDATES),
        )
        return {name: -rank for name, rank in convert(rows.fetchall(), list[tuple[int, float]])}

    def _covered(self, name: int, known: Sequence[tuple[Term, int]], count: int) -> float:
        """The share of the question's rare-word mass that a passage holds; words that stand nowhere count as rarest."""
        mass = held = 0.0
        for term, number in known:
            weight = log(1 + (count - number + 0.5) / (number + 0.5)) * (WEAK if term.weak else 1.0)
            mass += weight
            if number and self._number(
                "SELECT COUNT(*) FROM words WHERE words MATCH ? AND rowid = ?", term.match, name
            ):
                held += weight
        return held / mass if mass else 0.0

    def _places(self, scores: Mapping[int, float], days: Days | None) -> dict[int, Place]:
        """Those of the passages with a score, of their neighbours, and of the passages of the named days."""
        found: dict[int, Place] = {}
        for name in scores:
            if name not in found:
                found |= self._placed(
                    "FROM passages AS p JOIN passages AS q ON q.grp = p.grp AND q.position BETWEEN"
                    " p.position - 1 AND p.position + 1 WHERE p.id = ?",
                    name,
                )
        if days is None:
            return found
        if not days.yearly:
            return found | self._placed(
                "FROM passages AS q WHERE q.day BETWEEN ? AND ?", days.first - 1, days.last + AFTER
            )
        for name, place in self._placed("FROM passages AS q WHERE q.day >= 0").items():
            if days.nearness(place.day, after=AFTER):
                found[name] = place
        return found

    def _placed(self, condition: str, *values: int) -> dict[int, Place]:
        rows = self._connection.execute(
            f"SELECT q.id, q.grp, q.position, q.speaker, q.day, q.timed, q.long {condition}", values
        )
        found = convert(rows.fetchall(), list[tuple[int, str, int, str, int, int, int]])
        return {row[0]: Place(*row[1:5], timed=bool(row[5]), long=bool(row[6])) for row in found}

    def _named(self, question: str) -> frozenset[str]:
        """The speakers that the question names by one of their names."""
        spoken = set(indexed(question).split())
        rows = self._connection.execute("SELECT DISTINCT speaker FROM passages WHERE speaker != ''")
        found = convert(rows.fetchall(), list[tuple[str]])
        return frozenset(name for (name,) in found if not spoken.isdisjoint(indexed(name).split()))

    def _number(self, statement: str, *values: str | int) -> int:
        (number,) = convert(self._connection.execute(statement, values).fetchone(), tuple[int])
        return number
