"""Outbox: every outbound part, stored in the transaction that made it, delivered afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct, convert

from limpet.store.owner import Owner
from limpet.store.sql import Connection, Value
from limpet.types.envelope import NOTHING_BESIDE, Address, Beside, Body, OutboxRow, OutboxState, Part, PartKind

TERMINAL = "cli"
"""The channel of terminals, which show their parts themselves."""
OWNER_KNOWS, SESSION_KNOWS = 1, 2

_COLUMNS = (
    "id, session, turn, channel, account, chat, thread, text, state, created, kind, ifnull(place, id), attempts,"
    " ifnull(next_attempt, 0), platform_id, error, idempotency, body, beside"
)
_OPEN = "state IN ('queued', 'attempting') AND kind != 'preview'"
_IN_CHAT = "channel = ? AND account = ? AND chat = ?"
_ENDED_BADLY = "state IN ('failed', 'expired', 'unknown')"
_body = msgspec.json.Decoder(Body)
_beside = msgspec.json.Decoder(Beside)
_encoder = msgspec.json.Encoder()


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
    place: int
    attempts: int
    due: int
    platform_id: str
    error: str
    key: str
    body: bytes | None
    beside: bytes | None


def made(connection: Connection, key: str) -> int:
    """When the part with an idempotency key was queued (UTC ms); 0 when it was not."""
    row = connection.execute("SELECT created FROM outbox WHERE idempotency = ?", (key,)).fetchone()
    return 0 if row is None else convert(row, tuple[int])[0]


def queue(connection: Connection, part: Part, *, session: str, turn: str, now: int) -> bool:
    """Queue a part; False, and nothing happens, when its key was queued before."""
    where = part.address
    beside = _encoder.encode(part.beside) if part.beside != NOTHING_BESIDE else None
    connection.execute(
        "INSERT INTO outbox (session, turn, channel, account, chat, thread, kind, text, state, created, idempotency,"
        " beside) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            session, turn, where.channel, where.account, where.chat, where.thread, part.kind, part.text, now, part.key,
            beside,
        ),
    )  # fmt: skip
    return connection.changes() > 0


def waiting(connection: Connection, address: Address) -> list[OutboxRow]:
    """The parts for a chat that are not ended, in order; those of all its threads."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox WHERE {_IN_CHAT} AND {_OPEN} ORDER BY ifnull(place, id), id", _chat(address)
    )
    return [_row(row) for row in rows]


class Place(Struct, frozen=True):
    """Where a part stands among those of its chat."""

    place: int
    row: int


def after(connection: Connection, address: Address, place: Place, *, limit: int) -> list[OutboxRow]:
    """What has arrived in a chat after a place, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_arrived WHERE {_IN_CHAT} AND state = 'sent'"
        " AND kind != 'preview' AND (ifnull(place, id), id) > (?, ?) ORDER BY ifnull(place, id), id LIMIT ?",
        (*_chat(address), place.place, place.row, limit),
    )
    return [_row(row) for row in rows]


def latest(connection: Connection, address: Address, *, limit: int) -> list[OutboxRow]:
    """What has arrived in a chat last, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_arrived WHERE {_IN_CHAT} AND state = 'sent'"
        " AND kind != 'preview' ORDER BY ifnull(place, id) DESC, id DESC LIMIT ?",
        (*_chat(address), limit),
    )
    return list(map(_row, rows))[::-1]


def newest(connection: Connection, address: Address) -> Place:
    """The place of what has arrived in a chat last; that before everything where nothing has."""
    row = connection.execute(
        f"SELECT ifnull(place, id), id FROM outbox INDEXED BY outbox_arrived WHERE {_IN_CHAT} AND state = 'sent'"
        " AND kind != 'preview' ORDER BY ifnull(place, id) DESC, id DESC LIMIT 1",
        _chat(address),
    ).fetchone()
    return Place(*convert(row, tuple[int, int])) if row else Place(0, 0)


def since(connection: Connection, address: Address, moment: int) -> list[OutboxRow]:
    """What was queued for a chat from a moment on (UTC ms), whatever became of it, oldest first; previews left out."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox WHERE {_IN_CHAT} AND kind != 'preview'"
        " AND id > ifnull((SELECT id FROM outbox WHERE created < ? ORDER BY id DESC LIMIT 1), 0) ORDER BY id",
        (*_chat(address), moment),
    )
    return list(map(_row, rows))


def of_turn(connection: Connection, turn: str) -> list[OutboxRow]:
    """What a turn has said, whatever became of it, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_turn"
        " WHERE turn = ? AND turn != '' AND kind != 'preview' ORDER BY id",
        (turn,),
    )
    return list(map(_row, rows))


def chats_waiting(connection: Connection) -> list[Address]:
    """The chats for which parts are not ended, without their threads; those of terminals left out."""
    rows = connection.execute(
        f"SELECT DISTINCT channel, account, chat FROM outbox WHERE {_OPEN} AND channel != ?", (TERMINAL,)
    )
    return [Address(*one) for one in convert(rows.fetchall(), list[tuple[str, str, str]])]


def split(connection: Connection, row: OutboxRow, bodies: Sequence[Body]) -> None:
    """The part `row` goes out as these messages: it is the first of them, the others follow it at its place.

    Its files go with the last, its buttons too; what it answers is answered by the first.
    """
    last = len(bodies) - 1
    for number, body in enumerate(bodies):
        beside = Beside(
            reply_to=row.beside.reply_to if number == 0 else "",
            attachments=row.beside.attachments if number == last else (),
            choices=row.beside.choices if number == last else (),
        )
        values = (_encoder.encode(body), _encoder.encode(beside))
        if number == 0:
            connection.execute(
                "UPDATE outbox SET place = id, body = ?, beside = ? WHERE id = ? AND state = 'queued'",
                (*values, row.id),
            )
            continue
        where = row.address
        connection.execute(
            "INSERT INTO outbox (session, turn, channel, account, chat, thread, kind, text, state, created,"
            " idempotency, place, body, beside) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (
                row.session, row.turn, where.channel, where.account, where.chat, where.thread, row.kind, body.plain,
                row.created, f"{row.key}.{number}", row.place, *values,
            ),
        )  # fmt: skip


def move(connection: Connection, key: str, *, place: int) -> None:
    """The part of this idempotency key is delivered at the place of another."""
    connection.execute("UPDATE outbox SET place = ? WHERE idempotency = ?", (place, key))


def attempt(connection: Connection, row: int, *, owner: Owner, again: bool = False) -> OutboxState:
    """Intend to send a part; gives its state afterwards. Send only when that is `attempting`.

    A part that a dead process was sending is `unknown`: it may have arrived, so it is never blindly sent again; with
    `again` it is tried once more, where that cannot make it seen twice. One that a living process is sending stays as
    it is and gives `queued`.
    """
    found = connection.execute("SELECT state, owner FROM outbox WHERE id = ?", (row,)).fetchone()
    if found is None:
        return "expired"
    state, holder = convert(found, tuple[OutboxState, str])
    if state == "attempting" and (holder == owner.name or owner.alive(holder)):
        return "queued"
    if state == "queued" or (state == "attempting" and again):
        connection.execute(
            "UPDATE outbox SET state = 'attempting', owner = ?, attempts = attempts + 1 WHERE id = ?", (owner.name, row)
        )
        return "attempting"
    if state == "attempting":
        settle(connection, row, state="unknown", error="the process that sent it died")
        return "unknown"
    return state


def settle(connection: Connection, row: int, *, state: OutboxState, error: str = "", platform_id: str = "") -> None:
    """A part ends: `sent`, `unknown`, `failed` or `expired`."""
    connection.execute(
        "UPDATE outbox SET state = ?, owner = '', error = ?, platform_id = ? WHERE id = ?",
        (state, error, platform_id, row),
    )


def defer(connection: Connection, row: int, *, due: int, error: str, counts: bool = True) -> None:
    """A part was not accepted: it is tried again at `due` (UTC ms). Without `counts` that was no attempt."""
    connection.execute(
        "UPDATE outbox SET state = 'queued', owner = '', error = ?, next_attempt = ?, attempts = attempts - ?"
        " WHERE id = ?",
        (error, due, not counts, row),
    )


def missing_before(connection: Connection, row: OutboxRow) -> bool:
    """Whether a part that may not have arrived stands before `row`, which says so: asked again, it is False."""
    connection.execute(
        f"UPDATE outbox SET told = told | {OWNER_KNOWS} WHERE {_IN_CHAT} AND state = 'unknown'"
        f" AND NOT told & {OWNER_KNOWS} AND ifnull(place, id) <= ?",
        (*_chat(row.address), row.place),
    )
    return connection.changes() > 0


def show(connection: Connection, part: Part, *, turn: str, owner: Owner, now: int) -> int:
    """Intend to show a preview of what a turn will say; gives its row. It is never queued."""
    where = part.address
    connection.execute(
        "INSERT INTO outbox (session, turn, channel, account, chat, thread, kind, text, state, owner, created,"
        " idempotency) VALUES ('', ?, ?, ?, ?, ?, 'preview', '', 'attempting', ?, ?, ?)",
        (turn, where.channel, where.account, where.chat, where.thread, owner.name, now, part.key),
    )
    (row,) = convert(connection.execute("SELECT last_insert_rowid()").fetchone(), tuple[int])
    return row


def previews(connection: Connection, turn: str, address: Address) -> list[OutboxRow]:
    """The previews of a turn in a chat that are seen there, the newest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox WHERE turn = ? AND kind = 'preview' AND state = 'sent' AND platform_id != ''"
        f" AND {_IN_CHAT} AND thread = ? ORDER BY id DESC",
        (turn, *_chat(address), address.thread),
    )
    return [_row(row) for row in rows]


def use_up(connection: Connection, preview: int) -> None:
    """A preview has become a message of its own."""
    connection.execute("UPDATE outbox SET state = 'expired', told = 3 WHERE id = ?", (preview,))


def blocks(connection: Connection, turn: str, address: Address) -> list[str]:
    """What a turn has already said in a chat piece by piece, in order."""
    rows = connection.execute(
        f"SELECT text FROM outbox WHERE turn = ? AND kind = 'block' AND {_IN_CHAT} AND thread = ?"
        " AND ifnull(place, id) = id AND state NOT IN ('failed', 'expired') ORDER BY id",
        (turn, *_chat(address), address.thread),
    )
    return [text for (text,) in convert(rows.fetchall(), list[tuple[str]])]


def untold(connection: Connection, *, knows: int = OWNER_KNOWS, session: str = "") -> list[OutboxRow]:
    """Parts that ended badly and that the owner (or the conversation `session`) has not been told of, oldest first.

    What may have arrived (`unknown`) is told in its own chat. Reports are not reported.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_untold WHERE told != 3 AND {_ENDED_BADLY}"
        f" AND NOT told & ? AND (? = '' OR session = ?) AND channel != ? AND kind IN ('reply', 'notice')"
        " AND state != 'unknown' ORDER BY id LIMIT 100",
        (knows, session, session, TERMINAL),
    )
    return [_row(row) for row in rows]


def mark_told(connection: Connection, rows: Sequence[int], *, knows: int) -> None:
    for row in rows:
        connection.execute("UPDATE outbox SET told = told | ? WHERE id = ?", (knows, row))


def tell(connection: Connection, session: str) -> str:
    """What a conversation has not heard yet of messages of its own that did not arrive; from now on it has."""
    rows = untold(connection, knows=SESSION_KNOWS, session=session)
    mark_told(connection, [row.id for row in rows], knows=SESSION_KNOWS)
    return "\n".join(
        f"[Your message to {row.address.channel} {row.address.chat} did not arrive: {row.error or row.state}."
        f" It began: {row.text[:80]!r}]"
        for row in rows
    )


def listed(connection: Connection, states: Sequence[OutboxState], *, limit: int = 50) -> list[OutboxRow]:
    """The newest parts in these states, without those of terminals."""
    marks = ", ".join("?" * len(states))
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM outbox WHERE channel != ? AND kind != 'preview' AND state IN ({marks})"
        " ORDER BY id DESC LIMIT ?",
        (TERMINAL, *states, limit),
    )
    return [_row(row) for row in rows]


def find(connection: Connection, row: int) -> OutboxRow | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", (row,)).fetchone()
    return None if found is None else _row(found)


def retry(connection: Connection, row: int, *, now: int) -> bool:
    """On the owner's word a part that ended badly is sent after all; False when it did not, or there is none."""
    connection.execute(
        f"UPDATE outbox SET state = 'queued', attempts = 0, next_attempt = NULL, error = '', created = ?"
        f" WHERE id = ? AND kind != 'preview' AND {_ENDED_BADLY}",
        (now, row),
    )
    return connection.changes() > 0


def drop(connection: Connection, row: int) -> bool:
    """On the owner's word a part that waits is not sent, or one that ended badly is forgotten."""
    connection.execute(
        f"UPDATE outbox SET state = 'expired', error = 'dropped by the owner', told = 3"
        f" WHERE id = ? AND (state = 'queued' OR {_ENDED_BADLY})",
        (row,),
    )
    return connection.changes() > 0


def _chat(address: Address) -> tuple[str, str, str]:
    return address.channel, address.account, address.chat


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
        place=stored.place,
        attempts=stored.attempts,
        due=stored.due,
        platform_id=stored.platform_id,
        error=stored.error,
        key=stored.key,
        body=_body.decode(stored.body) if stored.body else None,
        beside=_beside.decode(stored.beside) if stored.beside else NOTHING_BESIDE,
    )
