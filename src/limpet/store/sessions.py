"""Sessions and their leases. A lease is (session, owner, epoch); each claim raises the epoch, and every write to a
session's entries names the lease it is made under."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, convert

from limpet.errors import LeaseHeldError, LeaseLostError
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.envelope import QueueMode
from limpet.types.ids import new_id
from limpet.types.message import ThinkingLevel


class SessionRow(Struct, frozen=True, array_like=True):
    id: str
    key: str
    agent: str
    owner: str
    epoch: int
    title: str
    model: str
    parent: str
    created: int
    updated: int
    ended: int | None
    end_reason: str
    thinking: ThinkingLevel | Literal[""]
    summary: str
    closing: int
    cache_key: str
    erasures: int


class Lease(Struct, frozen=True):
    """The right to write to `session` until somebody claims it with a higher epoch."""

    session: str
    owner: str
    epoch: int


_COLUMNS = (
    "id, key, agent, owner, epoch, title, model, parent, created, updated, ended, end_reason, thinking, summary,"
    " closing, cache_key, erasures"
)


def live(connection: Connection, key: str) -> SessionRow | None:
    """The session that is live under `key`."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE key = ? AND ended IS NULL", (key,)).fetchone()
    return None if row is None else convert(row, SessionRow)


def find(connection: Connection, session: str) -> SessionRow | None:
    """The session with exactly this id, live or ended."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE id = ?", (session,)).fetchone()
    return None if row is None else convert(row, SessionRow)


def recent(
    connection: Connection, *, limit: int = 50, skip: int = 0, state: str = "", agent: str = "", key: str = ""
) -> list[SessionRow]:
    """The newest sessions but for the first `skip`, by their last entry: `live` or `ended` ones, of an agent, whose key
    holds a text."""
    conditions = {"live": "ended IS NULL", "ended": "ended IS NOT NULL"}
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE {conditions.get(state, 'TRUE')}"
        " AND agent = COALESCE(NULLIF(?, ''), agent) AND instr(key, ?) ORDER BY updated DESC, id DESC LIMIT ? OFFSET ?",
        (agent, key, limit, skip),
    )
    return [convert(row, SessionRow) for row in rows]


def under(connection: Connection, key: str) -> list[SessionRow]:
    """All sessions of a key, the oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE key = ? ORDER BY created, id", (key,))
    return [convert(row, SessionRow) for row in rows]


def ended_before(connection: Connection, moment: int) -> list[SessionRow]:
    """The sessions that ended before a moment (UTC ms) and owe no notes, the oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE ended < ? AND closing = 0 ORDER BY ended", (moment,)
    )
    return [convert(row, SessionRow) for row in rows]


def runs_before(connection: Connection, moment: int) -> list[SessionRow]:
    """The sessions of runs of jobs that were over before a moment (UTC ms), the oldest first: those that have ended,
    and the last ones of jobs that have no further runs."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE key LIKE 'cron:%' AND updated < ?1 AND closing = 0 AND (ended < ?1"
        " OR (ended IS NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = substr(sessions.key, 6)"
        " AND jobs.state != 'over'))) ORDER BY updated",
        (moment,),
    )
    return [convert(row, SessionRow) for row in rows]


def open_live(connection: Connection, key: str, *, agent: str, now: int, parent: str = "") -> SessionRow:
    """The live session under `key`, begun now if there is none."""
    row = live(connection, key)
    if row is None:
        connection.execute(
            "INSERT INTO sessions (id, key, agent, parent, created, updated) VALUES (?, ?, ?, ?, ?, ?)",
            (new_id("s"), key, agent, parent, now, now),
        )
        row = live(connection, key)
        assert row is not None
    return row


def claim(connection: Connection, session: str, *, owner: Owner) -> Lease:
    """Take the session. Raises `LeaseHeldError` while a living process, or another task of this one, has it.

    The caller takes it out of `owner.held` when it is done with it, or when its transaction failed.
    """
    row = connection.execute("SELECT owner, epoch FROM sessions WHERE id = ?", (session,)).fetchone()
    if row is None:
        raise LeaseLostError(f"There is no session {session} any more.")
    holder, epoch = convert(row, tuple[str, int])
    if session in owner.held or (holder and holder != owner.name and owner.alive(holder)):
        raise LeaseHeldError(f"Session {session} is in use by process {holder.split('-')[0]}.", owner=holder)
    connection.execute("UPDATE sessions SET owner = ?, epoch = ? WHERE id = ?", (owner.name, epoch + 1, session))
    owner.held.add(session)
    return Lease(session=session, owner=owner.name, epoch=epoch + 1)


def release(connection: Connection, lease: Lease) -> None:
    """Give the session back; nothing happens when it is not ours any more."""
    connection.execute(
        "UPDATE sessions SET owner = '' WHERE id = ? AND owner = ? AND epoch = ?",
        (lease.session, lease.owner, lease.epoch),
    )


def fresh(connection: Connection, lease: Lease) -> bool:
    """Whether the lease still holds. Asked between committing an intent and acting on it."""
    row = connection.execute("SELECT owner, epoch FROM sessions WHERE id = ?", (lease.session,)).fetchone()
    return row == (lease.owner, lease.epoch)


def leaf(connection: Connection, session: str) -> str:
    """The entry on which the next one hangs; empty for a session without entries."""
    row = connection.execute("SELECT leaf FROM sessions WHERE id = ?", (session,)).fetchone()
    return convert(row, tuple[str])[0] if row else ""


def end(connection: Connection, lease: Lease, *, reason: str, now: int) -> None:
    """End the session under its lease; its key is free for a new one. Raises `LeaseLostError`.

    Its notes and its summary are written afterwards (`closing`), unless nothing was said in it. It counts as ended
    after all before it under its key, whatever the clock says.
    """
    connection.execute(
        "UPDATE sessions SET ended = max(?, (SELECT coalesce(max(one.ended), 0) + 1 FROM sessions AS one"
        " WHERE one.key = sessions.key)), end_reason = ?, owner = '', closing = (next_seq > 1)"
        " WHERE id = ? AND owner = ? AND epoch = ?",
        (now, reason, lease.session, lease.owner, lease.epoch),
    )
    if not connection.changes():
        raise lost(lease)


def end_unheld(connection: Connection, session: str, *, reason: str, now: int) -> None:
    """End a session in which no turn runs, whoever looks at it: its next epoch is nobody's. It owes no notes."""
    connection.execute(
        "UPDATE sessions SET ended = ?, end_reason = ?, owner = '', epoch = epoch + 1, closing = 0 WHERE id = ?",
        (now, reason, session),
    )


def closing(connection: Connection, key: str) -> list[SessionRow]:
    """The ended sessions of a key whose notes are still to be written, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM sessions WHERE key = ? AND closing > 0 ORDER BY ended", (key,))
    return [convert(row, SessionRow) for row in rows]


def keys_closing(connection: Connection) -> list[str]:
    """The keys under which ended sessions owe their notes."""
    rows = connection.execute("SELECT DISTINCT key FROM sessions WHERE closing > 0")
    return [key for (key,) in convert(rows.fetchall(), list[tuple[str]])]


def count_closing(connection: Connection, lease: Lease) -> None:
    """The notes of an ended session could not be written: once more later. Gives the lease back."""
    connection.execute("UPDATE sessions SET closing = closing + 1 WHERE id = ?", (lease.session,))
    release(connection, lease)


def close(connection: Connection, lease: Lease, *, summary: str) -> None:
    """The notes of an ended session are written; this is what it was about. Gives the lease back."""
    connection.execute("UPDATE sessions SET closing = 0, summary = ? WHERE id = ?", (summary, lease.session))
    release(connection, lease)


def owe_nothing(connection: Connection, session: str) -> None:
    """No notes are to be written of a session any more."""
    connection.execute("UPDATE sessions SET closing = 0 WHERE id = ?", (session,))


def newest_ended(connection: Connection, key: str) -> SessionRow | None:
    """The session of a key that ended last, of those in which something was said."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE key = ? AND ended IS NOT NULL AND next_seq > 1"
        " ORDER BY ended DESC LIMIT 1",
        (key,),
    ).fetchone()
    return None if row is None else convert(row, SessionRow)


def set_model(connection: Connection, lease: Lease, model: str) -> None:
    """Remember the session's model (`provider/model`). Raises `LeaseLostError`."""
    connection.execute(
        "UPDATE sessions SET model = ? WHERE id = ? AND owner = ? AND epoch = ?",
        (model, lease.session, lease.owner, lease.epoch),
    )
    if not connection.changes():
        raise lost(lease)


def set_thinking(connection: Connection, lease: Lease, thinking: str) -> None:
    """Remember how much the session's model may think; empty = as the settings say. Raises `LeaseLostError`."""
    connection.execute(
        "UPDATE sessions SET thinking = ? WHERE id = ? AND owner = ? AND epoch = ?",
        (thinking, lease.session, lease.owner, lease.epoch),
    )
    if not connection.changes():
        raise lost(lease)


def set_queue(connection: Connection, lease: Lease, mode: str) -> None:
    """Remember what becomes of messages while a turn runs; empty = as the settings say. Raises `LeaseLostError`."""
    connection.execute(
        "UPDATE sessions SET queue = ? WHERE id = ? AND owner = ? AND epoch = ?",
        (mode, lease.session, lease.owner, lease.epoch),
    )
    if not connection.changes():
        raise lost(lease)


def queue_of(connection: Connection, session: str) -> QueueMode | Literal[""]:
    """What becomes of a session's messages while a turn runs; empty = as the settings say."""
    row = connection.execute("SELECT queue FROM sessions WHERE id = ?", (session,)).fetchone()
    return convert(row[0], QueueMode | Literal[""]) if row else ""


def lost(lease: Lease) -> LeaseLostError:
    return LeaseLostError(
        f"Session {lease.session} was taken over by another process (we had epoch {lease.epoch}).",
        hint="Nothing more is written or run by this one.",
    )


def read_anew(connection: Connection, session: str) -> None:
    """Entries of the session were changed by an erasure: who holds its log reads it from the beginning."""
    connection.execute("UPDATE sessions SET erasures = erasures + 1 WHERE id = ?", (session,))


def several(connection: Connection) -> bool:
    """Whether there is more than one session."""
    return convert(
        connection.execute("SELECT COUNT(*) FROM (SELECT 1 FROM sessions LIMIT 2)").fetchone(), tuple[int]
    ) > (1,)
