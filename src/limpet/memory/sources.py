"""What the index is made of: the memory files of a workspace, and what was said in the sessions of an agent."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from datetime import date, datetime

import apsw
from msgspec import Struct, convert, structs

from limpet.memory.cut import BEFORE, Piece, parts, pieces
from limpet.memory.dates import EPOCH
from limpet.memory.entries import unmarked
from limpet.memory.index import Origin, Passage
from limpet.memory.rank import Place
from limpet.memory.scope import is_pending
from limpet.store import entries
from limpet.store.driver import explain
from limpet.store.sql import Connection
from limpet.types.content import Text
from limpet.types.entry import AssistantEntry, Entry, UserEntry

LARGEST = 4_000_000
"""Bytes of a file that are indexed."""
BATCH = 500
"""Entries that are read at once."""
YOU, AGENT = "you", "agent"
"""Speakers that have no name."""
Local = Callable[[int], datetime]
"""The owner's time of a moment (UTC ms)."""


def read_file(workspace: str, path: str) -> bytes:
    """The beginning of a memory file, `LARGEST` at most. Raises `OSError`, also for links and pipes."""
    handle = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, last = path.split("/")
        for part in folders:
            handle, before = (
                os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle),
                handle,
            )
            os.close(before)
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "it is not a file")
            return opened.read(LARGEST)
    finally:
        os.close(handle)


def file_passages(path: str, data: bytes) -> list[Passage]:
    """The passages of a memory file. What waits for the owner's word is withheld."""
    pending = is_pending(path)
    found = pieces(data.decode("utf-8-sig", "replace"), path=path)
    return [_passage(piece, Place(path, number, day=piece.day), pending=pending) for number, piece in enumerate(found)]


def _passage(piece: Piece, place: Place, *, pending: bool) -> Passage:
    """A piece without the mark of its entry, which says when it was written and whether strangers had a part in it."""
    text, day, trust = unmarked(piece.text)
    outside = pending or trust == "external"
    if place.day < 0 and day:
        place = structs.replace(place, day=date.fromisoformat(day).toordinal() - EPOCH)
    origin = Origin(place.group, piece.first, piece.last, trust="external" if outside else "owner", withheld=outside)
    return Passage(text, place, unmarked(piece.context)[0], origin)


class Talk(Struct, frozen=True, array_like=True):
    """A session: its newest entry, and how often something in it was erased."""

    id: str
    newest: int
    erasures: int


class Talks:
    """What was said in the sessions of `agent`, read from the database at `path` over a connection of its own."""

    def __init__(self, path: str, agent: str, local: Local) -> None:
        self._path = path
        self._agent = agent
        self._local = local
        self._database: apsw.Connection | None = None

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def all(self) -> list[Talk]:
        """Raises `StoreError` when the database cannot be read; without one there are none."""
        if self._database is None and not os.path.exists(self._path):
            return []
        try:
            rows = self._connection().execute(
                "SELECT id, next_seq - 1, erasures FROM sessions WHERE agent = ?", (self._agent,)
            )
            return convert(rows.fetchall(), list[Talk])
        except apsw.Error as error:
            raise explain(error, self._path) from error

    def after(self, talk: str, seq: int) -> list[Entry]:
        """The next entries of a session after `seq`. Raises `StoreError`."""
        try:
            return entries.load(self._connection(), talk, after=seq, limit=BATCH)
        except apsw.Error as error:
            raise explain(error, self._path) from error

    def passages(self, batch: list[Entry], *, position: int, before: str) -> Iterator[Passage]:
        """What a batch says, from `position` on; `before` is what was said before it."""
        for entry in batch:
            speaker, text = said(entry)
            if not text:
                continue
            day = self._local(entry.at).date()
            for part in parts(text):
                context = f"[{day:%d %B %Y}]" + (f"\n{before[:BEFORE]}" if before else "")
                yield Passage(part, _place(entry, position, speaker=speaker, day=day), context, _origin(entry))
                position += 1
                before = f"{speaker}: {part}"

    def _connection(self) -> Connection:
        if self._database is None:
            self._database = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
            self._database.set_busy_timeout(2_000)
            self._database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return self._database


def said(entry: Entry) -> tuple[str, str]:
    """Who says something in an entry, and what; empty where people and the agent say nothing."""
    if entry.erased:
        return "", ""
    match entry.payload:
        case UserEntry(message=message, sender=sender):
            return sender or YOU, "\n".join(one.text for one in message.content if isinstance(one, Text)).strip()
        case AssistantEntry(message=message):
            return AGENT, message.text.strip()
        case _:
            return "", ""


def _place(entry: Entry, position: int, *, speaker: str, day: date) -> Place:
    return Place(entry.session, position, speaker, day.toordinal() - EPOCH)


def _origin(entry: Entry) -> Origin:
    return Origin("", entry.seq, entry.seq, "session", entry.trust, entry.trust == "external")
