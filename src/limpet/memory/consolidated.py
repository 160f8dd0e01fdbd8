"""How far consolidation has come, by scope: its SQL."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, convert

from limpet.store.sql import Connection

WAIT = 300_000
"""Milliseconds after a first failure; twice as long after each further one."""
LONGEST = 86_400_000


class State(Struct, frozen=True, array_like=True):
    """When it last succeeded (UTC ms, 0 = never), how often it failed since, and before when it is not tried again."""

    at: int = 0
    failures: int = 0
    not_before: int = 0
    error: str = ""


def state(connection: Connection, scope: str) -> State:
    row = connection.execute(
        "SELECT at, failures, not_before, error FROM memory_state WHERE scope = ?", (scope,)
    ).fetchone()
    return convert(row, State) if row else State()


def seen(connection: Connection, scope: str) -> set[str]:
    """The ids of entries that were looked at."""
    return {str(name) for (name,) in connection.execute("SELECT id FROM memory_seen WHERE scope = ?", (scope,))}


def succeed(connection: Connection, scope: str, ids: Iterable[str], *, now: int) -> None:
    """These entries were looked at."""
    for one in ids:
        connection.execute("INSERT OR IGNORE INTO memory_seen VALUES (?, ?)", (scope, one))
    connection.execute("INSERT OR REPLACE INTO memory_state (scope, at) VALUES (?, ?)", (scope, now))


def fail(connection: Connection, scope: str, *, error: str, now: int) -> int:
    """Nothing was done; how often in a row that is now."""
    before = state(connection, scope)
    count = before.failures + 1
    wait = min(WAIT << min(count - 1, 20), LONGEST)
    connection.execute(
        "INSERT OR REPLACE INTO memory_state VALUES (?, ?, ?, ?, ?)", (scope, before.at, count, now + wait, error)
    )
    return count
