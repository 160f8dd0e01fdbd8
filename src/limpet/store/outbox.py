"""Outbox: every outbound part, stored in the transaction that made it, delivered afterwards."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, convert

from limpet.store.owner import Owner
from limpet.store.sql import Connection, Value
from limpet.types.envelope import Address, OutboxRow, OutboxState

PartKind = Literal["reply", "notice"]
"""Whether a part answers somebody or tells the owner something beside."""

_COLUMNS = "id, session, turn, channel, account, chat, thread, text, state, created, kind"


class _Stored(Struct, array_like=True):
    id: int
    session: str
    turn: str
    channel: str
    account: str
    chat: str
    thread: str
    text: str
    state: OutboxState
    created: int
    kind: PartKind


class Part(Struct, frozen=True):
    """A part to be delivered. `key` is its idempotency key: the same part is queued once."""

    address: Address
    text: str
    key: str
    kind: PartKind = "reply"


def queue(connection: Connection, part: Part, *, session: str, turn: str, now: int) -> None:
    """Queue a part; nothing happens when its key was queued before."""
    where = part.address
    connection.execute(
        "INSERT INTO outbox (session, turn, channel, account, chat, thread, kind, text, state, created, idempotency)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?) ON CONFLICT DO NOTHING",
        (session, turn, where.channel, where.account, where.chat, where.thread, part.kind, part.text, now, part.key),
    )


def waiting(connection: Connection, address: Address) -> list[OutboxRow]:
    """The parts for a chat that are not ended, in order; those of all its threads."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox WHERE channel = ? AND account = ? AND chat = ?"
        " AND state IN ('queued', 'attempting') ORDER BY id",
        (address.channel, address.account, address.chat),
    )
    return [_row(row) for row in rows]


def attempt(connection: Connection, row: int, *, owner: Owner) -> OutboxState:
    """Intend to send a part; gives its state afterwards. Send only when that is `attempting`.

    A part that a dead process was sending is `unknown`: it may have arrived, so it is never blindly sent again.
    One that a living process is sending stays as it is and gives `queued`.
    """
    found = connection.execute("SELECT state, owner FROM outbox WHERE id = ?", (row,)).fetchone()
    if found is None:
        return "expired"
    state, holder = convert(found, tuple[OutboxState, str])
    if state == "queued":
        connection.execute(
            "UPDATE outbox SET state = 'attempting', owner = ?, attempts = attempts + 1 WHERE id = ?", (owner.name, row)
        )
        return "attempting"
    if state == "attempting":
        if holder == owner.name or owner.alive(holder):
            return "queued"
        settle(connection, row, state="unknown")
        return "unknown"
    return state


def settle(connection: Connection, row: int, *, state: OutboxState, error: str = "") -> None:
    """A part ends: `sent`, `unknown`, `failed`, `expired` (or `queued` again when it was not accepted)."""
    connection.execute("UPDATE outbox SET state = ?, owner = '', error = ? WHERE id = ?", (state, error, row))


def _row(values: tuple[Value, ...]) -> OutboxRow:
    stored = convert(values, _Stored)
    return OutboxRow(
        id=stored.id,
        session=stored.session,
        turn=stored.turn,
        address=Address(channel=stored.channel, account=stored.account, chat=stored.chat, thread=stored.thread),
        text=stored.text,
        state=stored.state,
        created=stored.created,
        kind=stored.kind,
    )
