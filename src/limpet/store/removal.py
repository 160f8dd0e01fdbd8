"""Removal: the only place where something that was stored is changed or deleted, on the owner's word or by age.

Every function belongs into one transaction with the others of the same removal. The writer overwrites what it frees
(`secure_delete`); `Store.scrub` then empties the write-ahead log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
from msgspec import Raw, convert

from limpet.errors import InputError
from limpet.store import audit, occurrences, sessions, turns, wakes
from limpet.store.owner import Owner
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.types.codec import decode_payload, encode_payload
from limpet.types.content import Opaque
from limpet.types.entry import Entry, Payload, Tombstone
from limpet.types.envelope import Inbound

GONE = "[erased]"
_NAMES_BLOBS = """instr(payload, CAST('"blob":' AS BLOB)) OR instr(payload, CAST('"spill":' AS BLOB))"""
"""Whether a payload refers to a blob: all are looked through once, however many blobs are asked for."""
_inbound = msgspec.json.Decoder(Inbound)


def check_idle(connection: Connection, session: str, *, owner: Owner) -> SessionRow:
    """The session, when nobody works on it. Raises `InputError`."""
    row = sessions.find(connection, session)
    if row is None:
        raise InputError(f"There is no session {session} any more.")
    if turns.live(connection, session) or (row.owner and row.owner != owner.name and owner.alive(row.owner)):
        raise InputError(
            f"A turn of {row.key} ({session}) runs, or was interrupted.",
            hint="Let it end first: limpet chat opens the conversation, /stop ends a turn.",
        )
    return row


def places_of(connection: Connection, session: str, entry: str = "") -> list[tuple[str, int]]:
    """(session, seq) of the entries of a session, or of one (id), and of their copies in forks."""
    rows = connection.execute(
        "SELECT session, seq FROM entries WHERE id IN (SELECT id FROM entries WHERE session = ? AND ? IN ('', id))"
        " ORDER BY session, seq",
        (session, entry),
    )
    return convert(rows.fetchall(), list[tuple[str, int]])


def bury(connection: Connection, entry: Entry, rest: Payload | Opaque, *, now: int, why: str) -> None:
    """Put a tombstone in the place of an entry's payload; nothing happens where one stands."""
    row = connection.execute(
        "SELECT payload FROM entries WHERE session = ? AND seq = ?", (entry.session, entry.seq)
    ).fetchone()
    data = row[0] if row else None
    assert isinstance(data, bytes)
    if isinstance(decode_payload(data), Tombstone):
        return
    stone = Tombstone(hashlib.sha256(data).hexdigest(), at=now, why=why, rest=Raw(encode_payload(rest)))
    connection.execute(
        "UPDATE entries SET payload = ? WHERE session = ? AND seq = ?",
        (encode_payload(stone), entry.session, entry.seq),
    )


def blank_event(connection: Connection, row: int) -> None:
    """Forget what an event said; that it came stays known, so that it is not taken twice."""
    found = connection.execute("SELECT payload FROM inbox WHERE id = ?", (row,)).fetchone()
    if found is None or not isinstance(found[0], bytes):
        return
    old = _inbound.decode(found[0])
    left = Inbound(address=old.address, event=old.event, text=GONE, trust=old.trust)
    connection.execute("UPDATE inbox SET payload = ?, reason = '' WHERE id = ?", (msgspec.json.encode(left), row))


def events_of(connection: Connection, session: SessionRow) -> list[int]:
    """The events (inbox rows) that belong to a session: those of its turns, and commands given in its time."""
    rows = connection.execute(
        "SELECT id FROM inbox WHERE state IN ('done', 'refused') AND (turn IN (SELECT id FROM turns WHERE session = ?1)"
        " OR (turn = '' AND key = ?2 AND received BETWEEN ?3 AND ?4))",
        (session.id, session.key, session.created, session.ended or 2**62),
    )
    return [row for (row,) in convert(rows.fetchall(), list[tuple[int]])]


def blank_parts(connection: Connection, *, session: str = "", turn: str = "") -> None:
    """Forget what was sent or was to be sent: all of a session, or of one turn."""
    column, value = ("turn", turn) if turn else ("session", session)
    connection.execute(
        f"UPDATE outbox SET text = ?, error = '', state = CASE WHEN state IN ('queued', 'attempting') THEN 'expired'"
        f" ELSE state END WHERE {column} = ?",
        (GONE, value),
    )


def forget_words(connection: Connection, session: str, *, summary: str) -> None:
    """What is said of a session elsewhere than in its log; other processes read its log anew."""
    connection.execute(
        "UPDATE sessions SET title = '', summary = ?, erasures = erasures + 1 WHERE id = ?", (summary, session)
    )


def forget_errors(connection: Connection, session: str) -> None:
    """Of why its turns failed only the kind stays."""
    connection.execute(
        "UPDATE turns SET error = substr(error, 1, instr(error || ':', ':') - 1) WHERE session = ?", (session,)
    )


def forget_traces(connection: Connection, session: str) -> None:
    """The traces of failed requests hold what was said; which part of it cannot be told, so all of them go."""
    connection.execute("DELETE FROM traces WHERE session = ?", (session,))


def forget_commands(connection: Connection, session: str) -> None:
    """Of commands in the background what they were and said goes; that they run, and how they ended, stays."""
    connection.execute(
        "UPDATE wakes SET text = ? WHERE event IN (SELECT 'process:' || id FROM processes WHERE session = ?)",
        (GONE, session),
    )
    connection.execute("UPDATE processes SET command = '', tail = '' WHERE session = ?", (session,))


def forget_helpers(connection: Connection, session: str) -> None:
    """Of helpers that are over, and were its own or are it, what they were given and said goes."""
    connection.execute(
        "UPDATE helpers SET answer = '',"
        " errand = CAST(json_set(CAST(errand AS TEXT), '$.task', ?, '$.focus', '') AS BLOB)"
        " WHERE ended AND (session = ? OR key = (SELECT key FROM sessions WHERE id = ?))",
        (GONE, session, session),
    )


def forget_approvals(connection: Connection, session: str) -> None:
    """Approved plans hold what was said as well."""
    connection.execute("DELETE FROM approvals WHERE session = ?", (session,))


def delete(connection: Connection, session: str) -> None:
    """Delete a session with its entries, turns and traces. What it cost stays in `usage`."""
    connection.execute("DELETE FROM processes WHERE session = ? AND ended", (session,))
    own = "SELECT key FROM sessions WHERE id = ?"
    connection.execute(f"DELETE FROM helpers WHERE ended AND (session = ? OR key = ({own}))", (session, session))
    for table in ("entries", "turns", "traces", "approvals"):
        connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    connection.execute("DELETE FROM sessions WHERE id = ?", (session,))


def drop_blobs(connection: Connection, blobs: Iterable[str]) -> list[str]:
    """Forget those of `blobs` that nothing refers to any more; whose files are then to be deleted."""
    left = {blob.encode(): blob for blob in blobs}
    if not left:
        return []
    rows = connection.execute(
        f"SELECT payload FROM entries WHERE {_NAMES_BLOBS} UNION ALL SELECT payload FROM inbox WHERE {_NAMES_BLOBS}"
    )
    for (data,) in rows:
        assert isinstance(data, bytes)
        for blob in [blob for blob in left if blob in data]:
            del left[blob]
    gone = sorted(left.values())
    for blob in gone:
        connection.execute("DELETE FROM blobs WHERE hash = ?", (blob,))
    return gone


def record(connection: Connection, session: SessionRow, *, entries: int, why: str, now: int) -> None:
    """That something was removed, for good."""
    connection.execute(
        "INSERT INTO removals (at, session, key, agent, entries, why) VALUES (?, ?, ?, ?, ?, ?)",
        (now, session.id, session.key, session.agent, entries, why),
    )
    audit.append(connection, "content.removed", session.id, detail=f"{entries} entries, {why}", now=now)


def drop_old_rows(connection: Connection, *, before: int) -> int:
    """Delete events, parts and slots of jobs that ended before a moment (UTC ms); how many.

    Those of a turn that runs or waits stay, and so does `usage`: what was spent is never forgotten.
    """
    running = "SELECT id FROM turns WHERE state IN ('running', 'waiting')"
    connection.execute(
        f"DELETE FROM inbox WHERE state IN ('done', 'refused') AND received < ? AND turn NOT IN ({running})", (before,)
    )
    count = connection.changes()
    connection.execute(
        "DELETE FROM outbox WHERE state IN ('sent', 'unknown', 'failed', 'expired') AND created < ?"
        f" AND turn NOT IN ({running})",
        (before,),
    )
    count += connection.changes()
    for table in ("processes", "helpers"):
        connection.execute(f"DELETE FROM {table} WHERE ended AND told AND ended < ?", (before,))
    connection.execute(
        "DELETE FROM approvals WHERE at < ? AND (outcome NOT IN ('', 'always') OR revoked > 0)"
        f" AND turn NOT IN ({running})",
        (before,),
    )
    count += connection.changes() + wakes.clear(connection, before=before)
    connection.execute("DELETE FROM wakes WHERE at < ?", (before,))  # where no heartbeat beats, nobody takes them
    count += connection.changes()
    return count + occurrences.forget(connection, before=before)
