"""Wakes: what happened elsewhere and an agent's heartbeat is to look at, each stored once until a beat takes it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, convert

from limpet.store.sql import Connection
from limpet.types.envelope import Trust

MOST = 100
"""Wakes that are looked at in one go."""


class Wake(Struct, frozen=True, array_like=True):
    """Something happened: `source` says where (`webhook wake`, `event file x.json`), `text` what.

    `soon`: a beat is to look now; else the next one does. `at` is UTC milliseconds.
    """

    id: int
    agent: str
    at: int
    source: str
    text: str
    trust: Trust
    soon: bool


def add(
    connection: Connection, event: str, *, agent: str, source: str, text: str, trust: Trust, soon: bool, now: int
) -> int:
    """Store what happened; gives its id. The same `event` is stored once, and keeps its row."""
    connection.execute(
        "INSERT INTO wakes (event, agent, at, source, text, trust, soon) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (event) DO NOTHING",
        (event, agent, now, source, text, trust, soon),
    )
    row = connection.execute("SELECT id FROM wakes WHERE event = ?", (event,)).fetchone()
    return convert(row, tuple[int])[0]


def is_known(connection: Connection, event: str) -> bool:
    return connection.execute("SELECT 1 FROM wakes WHERE event = ?", (event,)).fetchone() is not None


def agents(connection: Connection) -> list[str]:
    """The agents for which something waits."""
    rows = connection.execute("SELECT DISTINCT agent FROM wakes INDEXED BY wakes_waiting WHERE taken = 0")
    return [agent for (agent,) in convert(rows.fetchall(), list[tuple[str]])]


def waiting(connection: Connection, *, agent: str = "", fading: str = "", since: int = 0) -> list[Wake]:
    """What nobody has looked at yet (for an agent), oldest first; from the source `fading` only what came after `since`
    (UTC ms)."""
    rows = connection.execute(
        "SELECT id, agent, at, source, text, trust, soon FROM wakes INDEXED BY wakes_waiting"
        " WHERE taken = 0 AND agent = coalesce(nullif(?, ''), agent) AND (source != ? OR at > ?) ORDER BY id LIMIT ?",
        (agent, fading, since, MOST),
    )
    return convert(rows.fetchall(), list[Wake], strict=False)


def take(connection: Connection, ids: Iterable[int], *, now: int) -> int:
    """A beat has them; gives how many of `ids` nobody had taken before."""
    taken = 0
    for one in ids:
        connection.execute("UPDATE wakes SET taken = ? WHERE id = ? AND taken = 0", (now, one))
        taken += connection.changes()
    return taken


def give_back(connection: Connection, *, agent: str, taken: int) -> None:
    """The beat that took some at that moment has failed: the next one on the grid is to look at them."""
    connection.execute("UPDATE wakes SET taken = 0, soon = 0 WHERE agent = ? AND taken = ?", (agent, taken))


def withdraw(connection: Connection, event: str, *, now: int) -> None:
    """Who is to know of it does by now."""
    connection.execute("UPDATE wakes SET taken = ? WHERE event = ? AND taken = 0", (now, event))


def clear(connection: Connection, *, before: int) -> int:
    """Delete what was taken before a moment; gives how many."""
    connection.execute("DELETE FROM wakes WHERE taken > 0 AND taken < ?", (before,))
    return connection.changes()
