"""Turns: one row per run of the loop."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, convert

from limpet.store.sql import Connection

TurnState = Literal["running", "waiting", "done", "failed", "interrupted", "cancelled"]


class TurnRow(Struct, frozen=True, array_like=True):
    """`attempts` counts the times it was claimed: 1, and one more for each crash. Times are UTC ms, cost µ$."""

    id: str
    session: str
    state: TurnState
    attempts: int
    stop_requested: int
    started: int
    ended: int | None
    cost: int | None
    error: str


_COLUMNS = "id, session, state, attempts, stop_requested, started, ended, cost, error"


def live(connection: Connection, session: str) -> TurnRow | None:
    """The running or waiting turn of a session."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE session = ? AND state IN ('running', 'waiting')", (session,)
    ).fetchone()
    return None if row is None else convert(row, TurnRow)


class LiveTurn(Struct, frozen=True, array_like=True):
    """A running or waiting turn; `owner` is the process that holds its session."""

    id: str
    session: str
    key: str
    agent: str
    owner: str
    state: TurnState
    stop_requested: int


def all_live(connection: Connection) -> list[LiveTurn]:
    """The running and waiting turns of all sessions that have not ended."""
    rows = connection.execute(
        "SELECT turns.id, session, key, agent, owner, state, stop_requested FROM turns INDEXED BY turns_live"
        " JOIN sessions ON sessions.id = turns.session"
        " WHERE state IN ('running', 'waiting') AND sessions.ended IS NULL"
    )
    return [convert(row, LiveTurn) for row in rows]


def of_key(connection: Connection, key: str) -> LiveTurn | None:
    """The running or waiting turn under a session key."""
    row = connection.execute(
        "SELECT turns.id, session, key, agent, owner, state, stop_requested FROM sessions"
        " JOIN turns ON turns.session = sessions.id AND state IN ('running', 'waiting')"
        " WHERE key = ? AND sessions.ended IS NULL",
        (key,),
    ).fetchone()
    return None if row is None else convert(row, LiveTurn)


def park(connection: Connection, turn: str) -> None:
    """The process that runs a turn ends in good order: that is no crash, so it does not count as an attempt."""
    connection.execute("UPDATE turns SET attempts = attempts - 1 WHERE id = ? AND state = 'running'", (turn,))


def find(connection: Connection, turn: str) -> TurnRow | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM turns WHERE id = ?", (turn,)).fetchone()
    return None if row is None else convert(row, TurnRow)


def newest(connection: Connection, session: str) -> TurnRow | None:
    """The turn of a session that was begun last."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE session = ? ORDER BY started DESC, id DESC LIMIT 1", (session,)
    ).fetchone()
    return None if row is None else convert(row, TurnRow)


def matching(connection: Connection, start: str) -> list[TurnRow]:
    """The turns whose id begins with `start`, at most ten."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM turns WHERE substr(id, 1, ?) = ? LIMIT 10", (len(start), start))
    return [convert(row, TurnRow) for row in rows]


def count(connection: Connection, session: str) -> int:
    """How many turns a session has had."""
    row = connection.execute("SELECT COUNT(*) FROM turns WHERE session = ?", (session,)).fetchone()
    return convert(row, tuple[int])[0]


def insert(connection: Connection, turn: str, session: str, *, now: int) -> None:
    connection.execute(
        "INSERT INTO turns (id, session, state, started) VALUES (?, ?, 'running', ?)", (turn, session, now)
    )


def go_on(connection: Connection, turn: str) -> None:
    """The turn runs again; once more than before, unless it only waited for its owner."""
    connection.execute(
        "UPDATE turns SET attempts = attempts + (state = 'running'), state = 'running' WHERE id = ?", (turn,)
    )


def wait(connection: Connection, turn: str) -> None:
    """The turn waits for its owner, and nobody holds its session."""
    connection.execute("UPDATE turns SET state = 'waiting' WHERE id = ?", (turn,))


def end(connection: Connection, turn: str, *, state: TurnState, now: int, error: str = "") -> None:
    """The turn is over; its cost is the sum of its requests."""
    connection.execute(
        "UPDATE turns SET state = ?, ended = ?, error = ?, stop_requested = 0,"
        " cost = (SELECT SUM(cost) FROM usage WHERE usage.turn = turns.id) WHERE id = ?",
        (state, now, error, turn),
    )


def request_stop(connection: Connection, key: str) -> bool:
    """Ask the turn that runs under a session key to stop, from whichever process; whether there is one.

    Needs no lease: it is not a write to the session, and the holder decides when it is safe.
    """
    connection.execute(
        "UPDATE turns SET stop_requested = 1 WHERE state IN ('running', 'waiting')"
        " AND session IN (SELECT id FROM sessions WHERE key = ? AND ended IS NULL)",
        (key,),
    )
    return connection.changes() > 0


def request_stop_of(connection: Connection, turn: str) -> None:
    """Ask a turn that runs or waits to stop."""
    connection.execute("UPDATE turns SET stop_requested = 1 WHERE id = ? AND state IN ('running', 'waiting')", (turn,))


def stop_requested(connection: Connection, turn: str) -> bool:
    return connection.execute("SELECT stop_requested FROM turns WHERE id = ?", (turn,)).fetchone() == (1,)
