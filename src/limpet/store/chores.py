"""Chores: what is done, or said, only now and then, and when that was last."""

from __future__ import annotations

from msgspec import convert

from limpet.store.sql import Connection

NEVER_AGAIN = 1 << 50
"""Milliseconds: for what is done once."""


def due(connection: Connection, name: str, *, now: int, every: int) -> bool:
    """Whether the chore `name` was last done `every` ms ago, or never."""
    row = connection.execute("SELECT at FROM chores WHERE name = ?", (name,)).fetchone()
    return row is None or convert(row, tuple[int])[0] + every <= now


def take_on(connection: Connection, name: str, *, now: int, every: int) -> bool:
    """Whether the chore is still due; from here on it counts as done."""
    if not due(connection, name, now=now, every=every):
        return False
    connection.execute("INSERT INTO chores VALUES (?1, ?2) ON CONFLICT DO UPDATE SET at = ?2", (name, now))
    return True
