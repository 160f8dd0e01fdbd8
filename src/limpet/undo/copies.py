"""Copies of files, by their SHA-256, and which turn they are for: one database of its own, beside that of the home.

It can be deleted at any time: then turns so far cannot be undone, and nothing else is lost. Everything here blocks;
callers run it in threads, one at a time.
"""

# apsw's stubs name a type that Python 3.11 has not:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

import apsw
import msgspec
from msgspec import Struct, convert

from limpet.undo.tree import Change, Node, Touched, Tree

SCHEMA = """
CREATE TABLE IF NOT EXISTS copies (
    hash BLOB PRIMARY KEY, size INTEGER NOT NULL, used INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS copies_used ON copies (used, size, hash);
CREATE TABLE IF NOT EXISTS indexes (workspace TEXT PRIMARY KEY, tree BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS points (
    turn TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    session TEXT NOT NULL,
    workspace TEXT NOT NULL,
    at INTEGER NOT NULL,
    undoes TEXT NOT NULL DEFAULT '',
    undone TEXT NOT NULL DEFAULT '',
    refused TEXT NOT NULL DEFAULT '',
    touched BLOB,
    tree BLOB,
    changes BLOB,
    closed BLOB
);
CREATE INDEX IF NOT EXISTS points_key ON points (key, at);
CREATE TABLE IF NOT EXISTS shown (key TEXT PRIMARY KEY, turn TEXT NOT NULL, fingerprint TEXT NOT NULL);
"""
DAY = 24 * 3600 * 1000
"""Milliseconds."""


class Point(Struct, frozen=True):
    """Of a turn: what it changed, and what can be brought back. Times are UTC ms.

    `undoes` is the turn that this point itself has undone (it is a rollback), `undone` the rollback that has undone
    it. `touched` are states before its file tools acted, `tree` the whole workspace before its first command.
    `refused` says why there is no such tree although commands ran. `changes` are known once it has ended; `closed`
    are folders that were not looked into.
    """

    turn: str
    key: str
    session: str
    workspace: str
    at: int
    undoes: str = ""
    undone: str = ""
    refused: str = ""
    touched: Touched = {}
    tree: Tree | None = None
    changes: tuple[Change, ...] | None = None
    closed: tuple[bytes, ...] = ()


_COLUMNS = "turn, key, session, workspace, at, undoes, undone, refused, touched, tree, changes, closed"
_encode = msgspec.msgpack.encode


class Copies:
    """The database at `path`, opened when it is first used."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None

    @property
    def exist(self) -> bool:
        """Whether anything was ever kept."""
        return os.path.exists(self.path)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close(True)
                self._connection = None

    @contextmanager
    def writing(self) -> Generator[apsw.Connection]:
        """One transaction: on the disk when the block has ended, undone when it raises. Raises `apsw.Error`."""
        with self._lock:
            connection = self._open()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _open(self) -> apsw.Connection:
        if self._connection is None:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            connection = apsw.Connection(self.path)
            connection.set_busy_timeout(10_000)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            connection.execute(SCHEMA)
            self._connection = connection
        return self._connection

    def keep(self, content: bytes, data: bytes, *, now: int) -> None:
        """Keep the bytes of a file, inside `writing`."""
        self._open().execute(
            "INSERT INTO copies VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET used = ?3",
            (content, len(data), now, data),
        )

    def get(self, content: bytes) -> bytes | None:
        """The bytes; None when they are gone."""
        with self._lock:
            row = self._open().execute("SELECT data FROM copies WHERE hash = ?", (content,)).fetchone()
        return None if row is None else convert(row, tuple[bytes])[0]

    def has(self, content: bytes) -> bool:
        with self._lock:
            return self._open().execute("SELECT 1 FROM copies WHERE hash = ?", (content,)).fetchone() is not None

    def index(self, workspace: str) -> Tree:
        """The newest whole tree of a workspace, of which every copy is kept; an empty one where there is none."""
        with self._lock:
            row = self._open().execute("SELECT tree FROM indexes WHERE workspace = ?", (workspace,)).fetchone()
        return Tree() if row is None else msgspec.msgpack.decode(convert(row, tuple[bytes])[0], type=Tree)

    def set_index(self, workspace: str, tree: Tree, *, before: Tree, now: int) -> None:
        """Replace it, inside `writing`. Copies that no file of the workspace has any more begin to age."""
        current = contents(tree.nodes.values())
        self._touch(contents(before.nodes.values()) - current, now=now)
        self._open().execute(
            "INSERT INTO indexes VALUES (?1, ?2) ON CONFLICT DO UPDATE SET tree = ?2", (workspace, _encode(tree))
        )

    def _touch(self, found: Iterable[bytes], *, now: int) -> None:
        self._open().executemany("UPDATE copies SET used = ? WHERE hash = ?", [(now, content) for content in found])

    def point(self, turn: str) -> Point | None:
        with self._lock:
            row = self._open().execute(f"SELECT {_COLUMNS} FROM points WHERE turn = ?", (turn,)).fetchone()
        return None if row is None else _point(row)

    def points(self, key: str, *, limit: int = 50) -> list[Point]:
        """The points of a session key and of its helpers, newest first."""
        below = f"{key}:subagent:"
        with self._lock:
            rows = self._open().execute(
                f"SELECT {_COLUMNS} FROM points WHERE key = ? OR substr(key, 1, ?) = ?"
                " ORDER BY at DESC, rowid DESC LIMIT ?",
                (key, len(below), below, limit),
            )
            return [_point(row) for row in rows]

    def save(self, point: Point) -> None:
        """Insert or replace a point, inside `writing`. What only running turns need goes with the next turn."""
        connection = self._open()
        connection.execute(
            "UPDATE points SET tree = NULL WHERE key = ? AND turn != ? AND changes IS NOT NULL AND tree IS NOT NULL",
            (point.key, point.turn),
        )
        blobs = (point.touched, point.tree, point.changes, point.closed)
        connection.execute(
            f"INSERT INTO points ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " undone = excluded.undone, refused = excluded.refused, touched = excluded.touched, tree = excluded.tree,"
            " changes = excluded.changes, closed = excluded.closed",
            (
                *(point.turn, point.key, point.session, point.workspace, point.at),
                *(point.undoes, point.undone, point.refused),
                *(None if blob is None else _encode(blob) for blob in blobs),
            ),
        )

    def end(self, point: Point, *, now: int) -> None:
        """Note the changes of a point that was saved before, inside `writing`."""
        assert point.changes is not None
        self._open().execute(
            "UPDATE points SET changes = ?, closed = ? WHERE turn = ?",
            (_encode(point.changes), _encode(point.closed), point.turn),
        )
        self._touch(contents(change.before for change in point.changes), now=now)

    def mark(self, turn: str, *, undone: str) -> None:
        """Say which rollback has undone a turn; empty: none any more. Inside `writing`."""
        self._open().execute("UPDATE points SET undone = ? WHERE turn = ?", (undone, turn))

    def shown(self, key: str) -> tuple[str, str]:
        """What was shown last in a session: the turn and the fingerprint of its plan; empty for nothing."""
        with self._lock:
            row = self._open().execute("SELECT turn, fingerprint FROM shown WHERE key = ?", (key,)).fetchone()
        return ("", "") if row is None else convert(row, tuple[str, str])

    def show(self, key: str, turn: str, fingerprint: str) -> None:
        """Remember it, inside `writing`."""
        self._open().execute("INSERT OR REPLACE INTO shown VALUES (?, ?, ?)", (key, turn, fingerprint))

    def sweep(self, *, before: int, largest: int) -> None:
        """Forget turns and copies from before a moment (UTC ms), then the oldest copies beyond `largest` bytes.

        What a workspace holds now stays: it is what the next turn needs. Inside `writing`.
        """
        connection = self._open()
        connection.execute("DELETE FROM points WHERE at < ?", (before,))
        workspaces = [convert(row, tuple[str])[0] for row in connection.execute("SELECT workspace FROM indexes")]
        current = contents(node for name in workspaces for node in self.index(name).nodes.values())
        rows = connection.execute("SELECT used, size, hash FROM copies INDEXED BY copies_used ORDER BY used")
        copies = convert(list(rows), list[tuple[int, int, bytes]])
        total = sum(size for _, size, _ in copies)
        for used, size, content in copies:
            if content not in current and (used < before or total > largest):
                connection.execute("DELETE FROM copies WHERE hash = ?", (content,))
                total -= size
        connection.execute("PRAGMA incremental_vacuum").fetchall()

    def sums(self) -> tuple[int, int]:
        """How many copies there are, and their bytes together."""
        with self._lock:
            row = self._open().execute("SELECT count(*), coalesce(sum(size), 0) FROM copies").fetchone()
        return convert(row, tuple[int, int])


def contents(nodes: Iterable[Node | None]) -> set[bytes]:
    """The hashes of all files among `nodes`."""
    return {node.content for node in nodes if node is not None and node.kind == "file" and node.content}


def needed(copies: Copies, connection: apsw.Connection) -> set[bytes]:
    """The contents that workspaces hold now, and those that some turn may be taken back with. Inside `writing`."""
    names = [convert(row, tuple[str])[0] for row in connection.execute("SELECT workspace FROM indexes")]
    found = contents(node for name in names for node in copies.index(name).nodes.values())
    for row in connection.execute(f"SELECT {_COLUMNS} FROM points"):
        point = _point(row)
        found |= contents(point.touched.values()) | contents(point.tree.nodes.values() if point.tree else ())
        found |= contents(node for change in point.changes or () for node in (change.before, change.after))
    return found


class _Row(Struct, array_like=True):
    turn: str
    key: str
    session: str
    workspace: str
    at: int
    undoes: str
    undone: str
    refused: str
    touched: bytes
    tree: bytes | None
    changes: bytes | None
    closed: bytes


def _point(values: Sequence[object]) -> Point:
    row = convert(values, _Row)
    return Point(
        turn=row.turn,
        key=row.key,
        session=row.session,
        workspace=row.workspace,
        at=row.at,
        undoes=row.undoes,
        undone=row.undone,
        refused=row.refused,
        touched=msgspec.msgpack.decode(row.touched, type=Touched),
        tree=None if row.tree is None else msgspec.msgpack.decode(row.tree, type=Tree),
        changes=None if row.changes is None else msgspec.msgpack.decode(row.changes, type=tuple[Change, ...]),
        closed=msgspec.msgpack.decode(row.closed, type=tuple[bytes, ...]),
    )
