"""The search index over passages: a SQLite file that can be thrown away and made anew from what it was made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from math import log
from typing import Literal

import apsw
from msgspec import Struct, convert, structs

from limpet.memory.dates import Days, asks_when, named_days, tells_when
from limpet.memory.rank import AFTER, LONG, Asked, Place, fused, placed, scaled
from limpet.memory.words import Term, indexed, terms
from limpet.store.sql import Connection, Value
from limpet.types.envelope import Trust

VERSION = 2
"""Of the schema and of what goes into it (`words`, `cut`, `dates`): an index of another version is made anew."""
CANDIDATES = 200
"""Passages of each kind of search that go on to the ranking."""
WEAK = 0.2
"""What a single character out of a longer run counts for, beside a whole word."""
COMMON = 0.5
"""Share of the passages in which a term may stand that still tells something, when rarer ones are asked for too."""
BACKGROUND = 50
"""Passages that a small store is taken to have besides, none with a word of the question: else its only note, which
holds all of what can be found, would count for little beside a word that stands nowhere."""
UNKNOWN = 0.6
"""What a word of the question that stands nowhere counts for, beside one that stands in one passage: it may be said in
other words there."""
ASUNDER = 0.5
"""What a pair of characters that stands nowhere counts for where its two stand near each other, beside the pair."""
DATED = 0.5
"""What a day that the question names counts for, of what else is missing."""
EXACT = 1.0
"""Of the best score, what a passage gains that holds a name or a path of the question letter by letter."""
OF_FILE = 20
"""Passages of a file that its name alone finds."""
SCANNED = 3_000
"""Passages with a term up to which it costs less to read through all of them than to look up those in question."""
UNNAMED = ("", "you", "agent")
"""Speakers that no question means by these words."""
_SCHEMA = """
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    grp TEXT NOT NULL,
    position INTEGER NOT NULL,
    speaker TEXT NOT NULL,
    day INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    long INTEGER NOT NULL,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    trust TEXT NOT NULL,
    withheld INTEGER NOT NULL,
    hash TEXT NOT NULL,
    context TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX passages_place ON passages (grp, position);
CREATE INDEX passages_day ON passages (day);
CREATE INDEX passages_path ON passages (path);
CREATE INDEX passages_hash ON passages (hash);
CREATE TABLE speakers (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (
    body, context, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('rank', 'bm25(1.0, 0.5)'); -- its own words are worth more than its context's
CREATE TABLE files (path TEXT PRIMARY KEY, changed INTEGER, size INTEGER, hash TEXT) WITHOUT ROWID;
CREATE TABLE talks (id TEXT PRIMARY KEY, upto INTEGER, erasures INTEGER) WITHOUT ROWID;
CREATE TABLE vectors (hash TEXT, model TEXT, data BLOB, PRIMARY KEY (hash, model));
"""

Source = Literal["memory", "session"]


class Origin(Struct, frozen=True):
    """What a passage was taken from: lines `first` to `last` of the file `path`, or the entry `first` of a session.

    `withheld`: it waits for the owner's word, and nothing shows it unasked.
    """

    path: str = ""
    first: int = 0
    last: int = 0
    source: Source = "memory"
    trust: Trust = "owner"
    withheld: bool = False


NOWHERE = Origin()


class Passage(Struct, frozen=True):
    """What is found as one: its text, and `context` that is searched with it but not shown."""

    text: str
    place: Place
    context: str = ""
    origin: Origin = NOWHERE


class Hit(Struct, frozen=True):
    """A passage (by id) that answers. `score` orders; `share` (0 to 1) says how much of the question it holds, and
    `dated` how near it is to the days that the question names."""

    id: int
    score: float
    share: float
    dated: float = 0.0

    @property
    def shown(self) -> float:
        """By which a search shows it: its share, and half of the rest for its day."""
        return self.share + (1 - self.share) * DATED * self.dated


class Within(Struct, frozen=True):
    """Where to search: files whose path begins with one of `paths` and with none of `without`, and the `sessions`
    (ids; None = all). Of the session `current` only entries up to `upto`. `withheld`: also what waits for the owner.
    """

    paths: tuple[str, ...] = ("",)
    without: tuple[str, ...] = ()
    sessions: frozenset[str] | None = None
    current: str = ""
    upto: int = 0
    withheld: bool = True

    @property
    def is_everything(self) -> bool:
        return self == EVERYTHING

    def holds(self, passage: Passage) -> bool:
        origin, group = passage.origin, passage.place.group
        if origin.withheld and not self.withheld:
            return False
        if origin.source == "memory":
            return origin.path.startswith(self.paths) and not origin.path.startswith(self.without)
        if group == self.current and origin.first > self.upto:
            return False
        return self.sessions is None or group in self.sessions


EVERYTHING = Within()


def telling(known: Sequence[tuple[Term, int]], count: int) -> list[Term]:
    """The terms to search for, of `known` with the number of `count` passages that hold them: those that occur, and
    those in very many only if all are."""
    there = [(term, number) for term, number in known if number]
    rare = [term for term, number in there if number <= max(1, COMMON * count)]
    return rare or [term for term, _ in there]


_AROUND = re.compile(r"^\W+|\W+$")
_QUOTED = re.compile(r"`([^`\n]{2,200})`|[\"“「]([^\"”」\n]{2,200})[\"”」]")


def exact_names(question: str) -> list[str]:
    """What a question wants letter by letter: quoted words, paths, addresses, and names with digits or `_`."""
    found = [match[1] or match[2] for match in _QUOTED.finditer(question)]
    for word in question.split():
        name = _AROUND.sub("", word)
        marked = any(mark in name[1:] for mark in "_/@.") or (
            any(map(str.isdigit, name)) and any(char.isascii() and char.isalpha() for char in name)
        )
        if len(name) > 2 and marked:
            found.append(name)
    return list(dict.fromkeys(one.casefold().strip() for one in found if one.strip()))


def hash_of(passage: Passage) -> str:
    """By which vectors are kept: of the text and what is searched with it."""
    return hashlib.sha256(embedded(passage).encode("utf-8", "replace")).hexdigest()


def embedded(passage: Passage) -> str:
    """The text whose vector is searched."""
    return f"{passage.context}\n{passage.text}" if passage.context else passage.text


class Index:
    """Passages in the database at `path`; with `fresh` it is made there. Raises `apsw.Error`."""

    def __init__(self, path: str = ":memory:", *, fresh: bool = True) -> None:
        self._database = apsw.Connection(path)
        self._database.set_busy_timeout(5_000)
        if fresh:
            self.connection.execute(f"PRAGMA synchronous = OFF; {_SCHEMA} PRAGMA user_version = {VERSION};")

    def close(self) -> None:
        self._database.close()

    @property
    def database(self) -> apsw.Connection:
        return self._database

    @property
    def connection(self) -> Connection:
        return self._database

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """One short transaction, for which other processes wait. Raises `apsw.BusyError` when it waits too long."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def add(self, passages: Iterable[Passage]) -> None:
        """In one transaction, or as part of the caller's."""
        with self._database:
            for passage in passages:
                self._add(passage)

    def _add(self, passage: Passage) -> None:
        place = structs.replace(passage.place, timed=tells_when(passage.text), long=len(passage.text.split()) >= LONG)
        origin = passage.origin
        self.connection.execute(
            "INSERT INTO passages (grp, position, speaker, day, timed, long, source, path, first, last, trust,"
            " withheld, hash, context, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *structs.astuple(place),
                origin.source,
                origin.path,
                origin.first,
                origin.last,
                origin.trust,
                origin.withheld,
                hash_of(passage),
                passage.context,
                passage.text,
            ),
        )
        self.connection.execute(
            "INSERT INTO words (rowid, body, context) VALUES (last_insert_rowid(), ?, ?)",
            (indexed(passage.text), indexed(passage.context)),
        )
        if place.speaker not in UNNAMED:
            self.connection.execute("INSERT OR IGNORE INTO speakers VALUES (?)", (place.speaker,))

    def drop(self, group: str) -> int:
        """Take out all passages of a file (path) or a session (id); how many. Part of the caller's transaction."""
        self.connection.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE grp = ?)", (group,))
        self.connection.execute("DELETE FROM passages WHERE grp = ?", (group,))
        return self.connection.changes()

    def compact(self) -> None:
        """Leave nothing in the file of what was dropped, its vectors included."""
        self.connection.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM passages)")
        merge(self.connection)

    def search(
        self,
        question: str,
        *,
        today: date,
        cosines: Mapping[int, float] | None = None,
        within: Within = EVERYTHING,
        shares: int = 0,
    ) -> list[Hit]:
        """The passages that answer `question` best, best first. `cosines` are those of its vector, if it has one.

        The first `shares` hits are told with their share of the question.
        """
        count = self._number("SELECT COUNT(*) FROM passages")
        known = self._counted(terms(question))
        found = self._matching(telling(known, count), within)
        near = dict(sorted((cosines or {}).items(), key=lambda one: -one[1])[:CANDIDATES])
        covered = self._covered(max(found, key=found.__getitem__), known, count) if found and near else 0.0
        scores = fused(
            scaled(found, low=0.0), scaled(near, low=min(cosines.values()) if cosines else None), covered=covered
        )
        asked = Asked(self._named(question), named_days(question, today), asks_when(question))
        places = self._places(scores, asked.days)
        ranked = placed(scores, places, asked)
        exact = self._exact(question, ranked)
        best = max(ranked.values(), default=1.0)
        for name in exact:
            ranked[name] = ranked.get(name, 0.0) + EXACT * best
        order = sorted(ranked.items(), key=lambda one: (-one[1], one[0]))
        told = self._shares([name for name, _ in order[:shares]], known, count)
        for name in told:
            told[name] = min(1.0, max(told[name], near.get(name, 0.0), 1.0 if name in exact else 0.0))
        dated = {
            name: asked.days.nearness(places[name].day, after=AFTER)
            for name in told
            if asked.days is not None and name in places
        }
        return [Hit(name, score, told.get(name, 0.0), dated.get(name, 0.0)) for name, score in order]

    def passages(self, names: Iterable[int]) -> dict[int, Passage]:
        """The passages with these ids."""
        wanted = ",".join(map(str, names))
        rows = self.connection.execute(
            "SELECT id, grp, position, speaker, day, path, first, last, source, trust, withheld, context, text"
            f" FROM passages WHERE id IN ({wanted})"
        )
        found: dict[int, Passage] = {}
        for row in convert(
            rows.fetchall(),
            list[tuple[int, str, int, str, int, str, int, int, Source, Trust, int, str, str]],
        ):
            name, group, position, speaker, day, path, first, last, source, trust, withheld, context, text = row
            origin = Origin(path, first, last, source, trust, bool(withheld))
            found[name] = Passage(text, Place(group, position, speaker, day), context, origin)
        return found

    def _counted(self, asked: Sequence[Term]) -> list[tuple[Term, int]]:
        """The terms with the number of passages that hold them."""
        statement = "SELECT COUNT(*) FROM words WHERE words MATCH ?"
        return [(term, self._number(statement, term.match)) for term in asked]

    def _matching(self, asked: Sequence[Term], within: Within) -> dict[int, float]:
        """BM25 of the best passages, higher is better."""
        if not asked:
            return {}
        condition, bound = ("", ()) if within.is_everything else _condition(within)
        rows = self.connection.execute(
            f"SELECT words.rowid, rank FROM words{condition and ' JOIN passages AS p ON p.id = words.rowid'}"
            f" WHERE words MATCH ?{condition} ORDER BY rank LIMIT ?",
            (" OR ".join(term.match for term in asked), *bound, CANDIDATES),
        )
        return {name: -rank for name, rank in convert(rows.fetchall(), list[tuple[int, float]])}

    def _covered(self, name: int, known: Sequence[tuple[Term, int]], count: int) -> float:
        """The share of the question's rare-word mass that a passage holds; words that stand nowhere count as rarest."""
        return self._shares([name], known, count, background=0)[name]

    def _shares(
        self, names: Sequence[int], known: Sequence[tuple[Term, int]], count: int, *, background: int = BACKGROUND
    ) -> dict[int, float]:
        mass = 0.0
        held = dict.fromkeys(names, 0.0)
        wanted = ",".join(map(str, names))
        for term, number in known:
            if term.loose and not number:
                continue
            weight = log(1 + (count + background - number + 0.5) / (number + 0.5)) * (WEAK if term.weak else 1.0)
            if not number and background:
                weight *= UNKNOWN
            mass += weight
            match = term.match if number else term.apart
            if not match or not names:
                continue
            row = "rowid" if number > SCANNED else "+rowid"  # else FTS5 would begin anew for each of the names
            rows = self.connection.execute(
                f"SELECT rowid FROM words WHERE words MATCH ? AND {row} IN ({wanted})", (match,)
            )
            for (name,) in convert(rows.fetchall(), list[tuple[int]]):
                held[name] += weight if number else weight * ASUNDER
        return {name: share / mass if mass else 0.0 for name, share in held.items()}

    def _exact(self, question: str, ranked: Mapping[int, float]) -> set[int]:
        """The passages that hold a name or path of the question as it stands there, or are of the file it names."""
        found: set[int] = set()
        names = exact_names(question)
        if not names:
            return found
        for name in names:
            if "." in name or "/" in name:
                rows = self.connection.execute(
                    "SELECT id FROM passages WHERE source = 'memory' AND path != '' AND"
                    " (lower(path) = ?1 OR substr(lower(path), -length(?1) - 1) = '/' || ?1) ORDER BY id LIMIT ?2",
                    (name, OF_FILE),
                )
                found.update(number for (number,) in convert(rows.fetchall(), list[tuple[int]]))
        first = sorted(ranked, key=ranked.__getitem__, reverse=True)[:CANDIDATES]
        for number, passage in self.passages(first).items():
            text = passage.text.casefold()
            if any(name in text for name in names):
                found.add(number)
        return found

    def _places(self, scores: Mapping[int, float], days: Days | None) -> dict[int, Place]:
        """Those of the passages with a score, of their neighbours, and of the passages of the named days."""
        found = self._placed(
            "FROM passages AS p CROSS JOIN passages AS q ON q.grp = p.grp AND q.position BETWEEN p.position - 1"
            f" AND p.position + 1 WHERE p.id IN ({','.join(map(str, scores))})"
        )
        if days is None:
            return found
        if not days.yearly:
            return found | self._placed(
                "FROM passages AS q WHERE q.day BETWEEN ? AND ?", days.first - 1, days.last + AFTER
            )
        rows = self.connection.execute("SELECT DISTINCT day FROM passages WHERE day >= 0")
        near = [day for (day,) in convert(rows.fetchall(), list[tuple[int]]) if days.nearness(day, after=AFTER)]
        return found | self._placed(f"FROM passages AS q WHERE q.day IN ({','.join(map(str, near))})")

    def _placed(self, condition: str, *values: int) -> dict[int, Place]:
        rows = self.connection.execute(
            f"SELECT q.id, q.grp, q.position, q.speaker, q.day, q.timed, q.long {condition}", values
        )
        found = convert(rows.fetchall(), list[tuple[int, str, int, str, int, int, int]])
        return {row[0]: Place(*row[1:5], timed=bool(row[5]), long=bool(row[6])) for row in found}

    def _named(self, question: str) -> frozenset[str]:
        """The speakers that the question names by one of their names."""
        spoken = set(indexed(question).split())
        rows = self.connection.execute("SELECT name FROM speakers")
        found = convert(rows.fetchall(), list[tuple[str]])
        return frozenset(name for (name,) in found if not spoken.isdisjoint(indexed(name).split()))

    def _number(self, statement: str, *values: str | int) -> int:
        (number,) = convert(self.connection.execute(statement, values).fetchone(), tuple[int])
        return number


def merge(connection: Connection) -> None:
    """Make one of the parts in which words came in: each search looks into all of them."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def _condition(within: Within) -> tuple[str, tuple[Value, ...]]:
    """`Within.holds` for the passage `p`, as SQL."""
    files = " OR ".join(["substr(p.path, 1, length(?)) = ?"] * len(within.paths)) or "FALSE"
    bound: list[Value] = [value for path in within.paths for value in (path, path)]
    for path in within.without:
        files = f"({files}) AND substr(p.path, 1, length(?)) != ?"
        bound += [path, path]
    talks = "TRUE"
    if within.sessions is not None:
        talks = f"p.grp IN ({','.join('?' * len(within.sessions))})"
        bound += sorted(within.sessions)
    bound += [within.current, within.upto]
    shown = "" if within.withheld else " AND NOT p.withheld"
    return (
        f" AND ((p.source = 'memory' AND ({files}))"
        f" OR (p.source = 'session' AND {talks} AND NOT (p.grp = ? AND p.first > ?))){shown}",
        tuple(bound),
    )
