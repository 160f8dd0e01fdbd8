"""Bringing the index up to what it is made of: what changed goes in, what is gone goes out, in short transactions."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct, convert

from limpet.memory.files import Seen, memory_files
from limpet.memory.index import Index, merge
from limpet.memory.sources import Talk, Talks, file_passages, read_file
from limpet.store.sql import Connection

MANY = 6_000
"""Rows written at once after which the index of words is merged; a passage is about three."""
JUST_NOW = 2_000_000_000
"""Nanoseconds within which a file may change again without its time showing it: then its hash decides."""


class Synced(Struct, frozen=True):
    """How many files and sessions were read anew, and whether all of it was looked at."""

    files: int = 0
    talks: int = 0
    complete: bool = True


def sync(index: Index, workspace: str, talks: Talks, *, stopped: Callable[[], bool] = lambda: False) -> Synced:
    """Raises `apsw.Error`, and `StoreError` when sessions cannot be read. Ends early once it is `stopped`."""
    before = index.database.total_changes()
    files = _files(index, workspace, stopped)
    said = 0 if stopped() else _talks(index, talks, stopped)
    if index.database.total_changes() - before > MANY and not stopped():
        with index.writing() as connection:
            merge(connection)
    return Synced(files, said, complete=not stopped())


class _File(Struct, frozen=True, array_like=True):
    path: str
    changed: int
    size: int
    hash: str


def _files(index: Index, workspace: str, stopped: Callable[[], bool]) -> int:
    known = {one.path: one for one in _known_files(index.connection)}
    count = 0
    for seen in memory_files(workspace):
        old = known.pop(seen.path, None)
        if stopped():
            return count
        if old is None or (old.changed, old.size) != (seen.changed, seen.size):
            count += _read(index, workspace, seen)
    for path in known:
        with index.writing() as connection:
            index.drop(path)
            connection.execute("DELETE FROM files WHERE path = ?", (path,))
        count += 1
    return count


def _known_files(connection: Connection) -> list[_File]:
    return convert(connection.execute("SELECT path, changed, size, hash FROM files").fetchall(), list[_File])


def _read(index: Index, workspace: str, seen: Seen) -> bool:
    """Index a file anew if it holds something else than before; whether it does."""
    began = time.time_ns()
    try:
        data = read_file(workspace, seen.path)
    except OSError:
        return False  # gone meanwhile, or not ours to read
    found = hashlib.sha256(data).hexdigest()
    changed = 0 if began - seen.changed < JUST_NOW else seen.changed
    with index.writing() as connection:
        row = connection.execute("SELECT hash FROM files WHERE path = ?", (seen.path,)).fetchone()
        fresh = row is None or row[0] != found
        if fresh:
            index.drop(seen.path)
            index.add(file_passages(seen.path, data))
        connection.execute("REPLACE INTO files VALUES (?, ?, ?, ?)", (seen.path, changed, seen.size, found))
    return fresh


def _talks(index: Index, talks: Talks, stopped: Callable[[], bool]) -> int:
    rows = index.connection.execute("SELECT id, upto, erasures FROM talks").fetchall()
    known = {one.id: one for one in convert(rows, list[Talk])}
    count, erased = 0, False
    for talk in talks.all():
        old = known.pop(talk.id, None)
        if old is not None and old.erasures != talk.erasures:
            erased = True
            forget(index, talk.id)
            old = None
        if old is None or old.newest < talk.newest:
            count += 1
            if not _continue(index, talks, talk, stopped=stopped):
                return count
    for name in known:
        erased = True
        forget(index, name)
    if erased:
        sweep(index)
    return count


def sweep(index: Index) -> None:
    """Leave nothing on disk of what was taken out, as far as no other process reads it just now."""
    with index.writing():
        index.compact()
    index.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def forget(index: Index, group: str) -> int:
    """Take a file (path) or a session (id) out of the index; how many passages that were. What is still there comes
    back with the next `sync`."""
    with index.writing() as connection:
        count = index.drop(group)
        connection.execute("DELETE FROM talks WHERE id = ?", (group,))
        connection.execute("DELETE FROM files WHERE path = ?", (group,))
    return count


def _continue(index: Index, talks: Talks, talk: Talk, *, stopped: Callable[[], bool]) -> bool:
    """Read a session on from where the index stopped, a batch a transaction; False when it was `stopped`."""
    while not stopped():
        with index.writing() as connection:
            done = _upto(connection, talk.id)
            batch = talks.after(talk.id, done)
            if batch:
                position, before = _end(connection, talk.id)
                index.add(talks.passages(batch, position=position, before=before))
            upto = batch[-1].seq if batch else max(done, talk.newest)
            connection.execute("REPLACE INTO talks VALUES (?, ?, ?)", (talk.id, upto, talk.erasures))
        if not batch or upto >= talk.newest:
            return True
    return False


def _upto(connection: Connection, talk: str) -> int:
    row = connection.execute("SELECT upto FROM talks WHERE id = ?", (talk,)).fetchone()
    return 0 if row is None else convert(row, tuple[int])[0]


def _end(connection: Connection, talk: str) -> tuple[int, str]:
    """The next position in a session, and what was said last."""
    row = connection.execute(
        "SELECT position + 1, speaker || ': ' || text FROM passages WHERE grp = ? ORDER BY position DESC LIMIT 1",
        (talk,),
    ).fetchone()
    with suppress(TypeError):
        return convert(row, tuple[int, str]) if row is not None else (0, "")
    return 0, ""
