"""Inbox: every inbound event, stored before its platform is told that we have it."""

from __future__ import annotations

import msgspec
from msgspec import Struct, convert, structs

from limpet.store.sql import Connection, Value
from limpet.types.envelope import Address, Inbound, InboxRow, InboxState

_inbound = msgspec.json.Decoder(Inbound)
_encoder = msgspec.json.Encoder()
_COLUMNS = "id, key, state, received, turn, payload"


class _Stored(Struct, array_like=True):
    id: int
    key: str
    state: InboxState
    received: int
    turn: str
    payload: bytes


def receive(connection: Connection, key: str, inbound: Inbound, *, now: int) -> tuple[InboxRow, bool]:
    """Commit 1 of a turn: store an event once. Gives its row and whether it is new.

    Sameness is (channel, account, event id); an event that came before keeps its row and state.
    """
    connection.execute(
        "INSERT INTO inbox (key, channel, account, event, message, state, received, payload)"
        " VALUES (?, ?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT DO NOTHING",
        (
            key, inbound.address.channel, inbound.address.account, inbound.event, inbound.message, now,
            _encoder.encode(inbound),
        ),
    )  # fmt: skip
    new = connection.changes() > 0
    row = find_event(connection, inbound.address, inbound.event)
    assert row is not None
    return row, new


def find_event(connection: Connection, address: Address, event: str) -> InboxRow | None:
    """The row of an event by the platform's name for it."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM inbox WHERE channel = ? AND account = ? AND event = ?",
        (address.channel, address.account, event),
    ).fetchone()
    return _row(row) if row is not None else None


def queued(connection: Connection, key: str) -> list[InboxRow]:
    """Events that wait for the session `key`, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM inbox INDEXED BY inbox_queued WHERE key = ? AND state = 'queued' ORDER BY id", (key,)
    )
    return [_row(row) for row in rows]


def keys_waiting(connection: Connection) -> list[str]:
    """The session keys for which events wait."""
    rows = connection.execute("SELECT DISTINCT key FROM inbox INDEXED BY inbox_queued WHERE state = 'queued'")
    return [key for (key,) in convert(rows.fetchall(), list[tuple[str]])]


def waits(connection: Connection, key: str) -> bool:
    """Whether an event waits for a session key."""
    row = connection.execute(
        "SELECT 1 FROM inbox INDEXED BY inbox_queued WHERE key = ? AND state = 'queued' LIMIT 1", (key,)
    ).fetchone()
    return row is not None


def of_message(connection: Connection, key: str, message: str) -> InboxRow | None:
    """The event that waits for a session key and is the platform's message `message`."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM inbox INDEXED BY inbox_message WHERE key = ? AND message = ? AND message != ''"
        " AND state = 'queued' ORDER BY id LIMIT 1",
        (key, message),
    ).fetchone()
    return None if found is None else _row(found)


def reword(connection: Connection, row: InboxRow, text: str) -> None:
    """An event that waits says something else now."""
    changed = structs.replace(row.inbound, text=text)
    connection.execute(
        "UPDATE inbox SET payload = ? WHERE id = ? AND state = 'queued'", (_encoder.encode(changed), row.id)
    )


def groups(connection: Connection) -> list[Inbound]:
    """The newest event of each group, and of each thread of one, in which somebody has spoken to an agent."""
    rows = connection.execute(
        "SELECT payload FROM inbox WHERE id IN (SELECT MAX(id) FROM inbox WHERE key LIKE '%:group:%' GROUP BY key)"
        " ORDER BY id DESC"
    )
    return [_inbound.decode(payload) for (payload,) in convert(rows.fetchall(), list[tuple[bytes]])]


def find(connection: Connection, row: int) -> InboxRow | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM inbox WHERE id = ?", (row,)).fetchone()
    return None if found is None else _row(found)


def newest(connection: Connection, key: str) -> InboxRow | None:
    """The event of a session key that came last."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM inbox WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
    ).fetchone()
    return None if found is None else _row(found)


def of_turn(connection: Connection, turn: str) -> list[InboxRow]:
    """The events that a running turn has taken, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM inbox WHERE turn = ? AND state = 'claimed' ORDER BY id", (turn,))
    return [_row(row) for row in rows]


def taken_by(connection: Connection, turn: str) -> list[InboxRow]:
    """The events that a turn has taken, done or not, oldest first."""
    return [
        _row(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM inbox WHERE turn = ? ORDER BY id", (turn,))
    ]


def take(connection: Connection, row: int, *, turn: str) -> None:
    """A turn takes a queued event."""
    connection.execute("UPDATE inbox SET state = 'claimed', turn = ? WHERE id = ?", (turn, row))


def settle(connection: Connection, row: int, *, state: InboxState, reason: str = "") -> bool:
    """An event that no turn takes ends: done (a command) or refused, with the reason. False: it had ended already."""
    connection.execute(
        "UPDATE inbox SET state = ?, reason = ? WHERE id = ? AND state IN ('queued', 'claimed')", (state, reason, row)
    )
    return connection.changes() > 0


def settle_turn(connection: Connection, turn: str) -> None:
    """All events of a turn are done with it."""
    connection.execute("UPDATE inbox SET state = 'done' WHERE turn = ? AND state = 'claimed'", (turn,))


def _row(values: tuple[Value, ...]) -> InboxRow:
    stored = convert(values, _Stored)
    return InboxRow(
        id=stored.id,
        key=stored.key,
        inbound=_inbound.decode(stored.payload),
        state=stored.state,
        received=stored.received,
        turn=stored.turn,
    )
