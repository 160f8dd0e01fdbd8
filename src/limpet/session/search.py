"""Full-text search over what people, the agent and its tools have said in all sessions.

The index is filled when somebody searches, from where it stopped the last time, so that a turn pays nothing for it. It
holds words, no texts: those are read from the log. Its tables' SQL lives here.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, convert

from limpet.session.export import plain
from limpet.store import entries, sessions
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.toolkit.words import indexed, query
from limpet.types.entry import AssistantEntry, Entry, ToolResultEntry, UserEntry

RESULT_CAP = 4_000
"""Characters of a tool result that can be found."""
OWN_TOOL = "session_search"
"""The tool that searches here: what it gave is not found again."""
BATCH = 500
"""Entries that go into the index in one commit."""
_COPIES = 4
"""Hits looked at for each one wanted: forks hold copies of the same entry."""


class Place(Struct, frozen=True):
    """An entry of a session, by which one goes on reading."""

    session: str
    seq: int

    @property
    def anchor(self) -> str:
        return f"{self.session}:{self.seq}"


class Hit(Struct, frozen=True):
    """An entry that was found, and what stands around it (itself included), in order."""

    place: Place
    session: SessionRow
    around: tuple[Entry, ...]

    @property
    def entry(self) -> Entry:
        return next(entry for entry in self.around if entry.seq == self.place.seq)


def spoken(entry: Entry) -> str:
    """What an entry says, so far as it can be found; empty for one that says nothing."""
    if entry.erased:
        return ""
    match entry.payload:
        case UserEntry(message=message):
            return "".join(map(plain, message.content)).strip()
        case AssistantEntry(message=message):
            return message.text.strip()
        case ToolResultEntry(name=name, result=result) if name != OWN_TOOL:
            return result.text[:RESULT_CAP].strip()
        case _:
            return ""


def who(entry: Entry) -> str:
    """Who said it: a sender, `you`, `agent`, or the name of a tool."""
    match entry.payload:
        case UserEntry(sender=sender):
            return sender or "you"
        case AssistantEntry():
            return "agent"
        case ToolResultEntry(name=name):
            return name
        case _:
            return ""


def fill(connection: Connection) -> bool:
    """Bring up to `BATCH` further entries into the index; whether there may be more."""
    row = connection.execute("SELECT id, indexed, next_seq - 1 FROM sessions WHERE indexed < next_seq - 1").fetchone()
    if row is None:
        return False
    session, done, newest = convert(row, tuple[str, int, int])
    batch = entries.load(connection, session, after=done, limit=BATCH)
    for entry in batch:
        if text := spoken(entry):
            connection.execute("INSERT INTO spoken (session, seq) VALUES (?, ?)", (session, entry.seq))
            connection.execute(
                "INSERT INTO spoken_words (rowid, words) VALUES (last_insert_rowid(), ?)", (indexed(text),)
            )
    connection.execute("UPDATE sessions SET indexed = ? WHERE id = ?", (batch[-1].seq if batch else newest, session))
    return True


def drop(connection: Connection, session: str, *, seq: int | None = None) -> None:
    """Take a session, or one entry of it, out of the index."""
    one = "" if seq is None else " AND seq = ?"
    bound = (session,) if seq is None else (session, seq)
    connection.execute(f"DELETE FROM spoken_words WHERE rowid IN (SELECT id FROM spoken WHERE session = ?{one})", bound)
    connection.execute(f"DELETE FROM spoken WHERE session = ?{one}", bound)


def compact(connection: Connection) -> None:
    """Write the index anew, so that nothing is left in it of what was dropped."""
    connection.execute("INSERT INTO spoken_words (spoken_words) VALUES ('optimize')")


def search(
    connection: Connection, words: str, *, within: Sequence[str] | None = None, limit: int = 10, around: int = 1
) -> list[Hit]:
    """The best hits, each entry once: those with every word, or where there is none with any of them.

    `within` are the sessions (ids) to search, None = all; `around` is how many neighbours come with a hit.
    """
    for every in (True, False):
        if not (wanted := query(words, every=every)):
            return []
        if hits := _search(connection, wanted, within=within, limit=limit, around=around):
            return hits
    return []


def _search(connection: Connection, wanted: str, *, within: Sequence[str] | None, limit: int, around: int) -> list[Hit]:
    only = "" if within is None else f" AND session IN ({', '.join('?' * len(within))})"
    rows = connection.execute(
        f"SELECT session, seq FROM spoken_words JOIN spoken ON spoken.id = spoken_words.rowid"
        f" WHERE spoken_words MATCH ?{only} ORDER BY rank, spoken.id LIMIT ?",
        (wanted, *(within or ()), limit * _COPIES),
    ).fetchall()
    hits: list[Hit] = []
    seen: set[str] = set()
    for session, seq in convert(rows, list[tuple[str, int]]):
        place = Place(session, seq)
        near = neighbours(connection, place, count=around)
        name = next((entry.id for entry in near if entry.seq == seq), "")
        row = sessions.find(connection, session)
        if row is None or not name or name in seen:
            continue
        seen.add(name)
        hits.append(Hit(place, row, tuple(near)))
        if len(hits) == limit:
            break
    return hits


def neighbours(connection: Connection, place: Place, *, count: int) -> list[Entry]:
    """What was said at a place and up to `count` entries before and after it."""
    earlier = connection.execute(
        "SELECT seq FROM spoken WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT ?",
        (place.session, place.seq, count + 1),
    ).fetchall()
    later = connection.execute(
        "SELECT seq FROM spoken WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?", (place.session, place.seq, count)
    ).fetchall()
    wanted = sorted(seq for (seq,) in convert([*earlier, *later], list[tuple[int]]))
    return entries.load_some(connection, place.session, wanted)


def about(text: str, words: str, *, length: int) -> str:
    """Up to `length` characters of `text` around the first of `words` that stands in it."""
    flat = " ".join(text.split())
    if len(flat) <= length:
        return flat
    low = flat.lower()
    found = [place for word in words.lower().split() if (place := low.find(word)) >= 0]
    start = max(0, min(min(found, default=0) - length // 3, len(flat) - length))
    return f"{'… ' if start else ''}{flat[start : start + length].strip()}{' …' if start + length < len(flat) else ''}"
