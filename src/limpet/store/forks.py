"""Forks: a new session that begins with what another one holds."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.errors import InputError
from limpet.store import sessions
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.types.entry import Entry, Label
from limpet.types.ids import new_id


def fork(connection: Connection, origin: SessionRow, line: Sequence[Entry], *, key: str, now: int) -> str:
    """Begin a session under `key` with copies of the entries `line` of `origin`, labels last; gives its id.

    The copies keep their ids, so that all references among them hold and an erasure finds each copy; the new session
    needs nothing of the old one any more. Raises `InputError` when the key is in use.
    """
    if sessions.live(connection, key):
        raise InputError(f"There is a conversation {key} already.", hint="Choose another name.")
    name = new_id("s")
    leaf = next((entry.id for entry in reversed(line) if not isinstance(entry.payload, Label)), "")
    connection.execute(
        "INSERT INTO sessions (id, key, agent, parent, model, thinking, created, updated, next_seq, leaf, cache_key)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            name, key, origin.agent, origin.id, origin.model, origin.thinking, now, now, len(line) + 1,
            leaf, origin.cache_key or origin.id,
        ),
    )  # fmt: skip
    for seq, entry in enumerate(line, start=1):
        connection.execute(
            "INSERT INTO entries SELECT ?, ?, id, parent, at, turn, trust, kind, payload FROM entries"
            " WHERE session = ? AND seq = ?",
            (name, seq, origin.id, entry.seq),
        )
    return name


def free_key(connection: Connection, base: str) -> str:
    """`base`, or with the first number behind it under which no session lives."""
    key, number = base, 1
    while sessions.live(connection, key):
        number += 1
        key = f"{base}-{number}"
    return key
