"""Entries: appended under a lease, read in order, never changed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import convert

from limpet.store.sessions import Lease, lost
from limpet.store.sql import Connection, Value
from limpet.types.codec import decode_payload, encode_payload
from limpet.types.entry import Entry, Label, Leaf, Payload, Tombstone
from limpet.types.envelope import Trust
from limpet.types.ids import new_id


def append(
    connection: Connection, lease: Lease, payload: Payload, *, turn: str, now: int, trust: Trust = "owner"
) -> Entry:
    """Append one entry at the leaf. Raises `LeaseLostError` when the lease does not hold."""
    row = connection.execute(
        "SELECT next_seq, leaf FROM sessions WHERE id = ? AND owner = ? AND epoch = ?",
        (lease.session, lease.owner, lease.epoch),
    ).fetchone()
    if row is None:
        raise lost(lease)
    seq, leaf = convert(row, tuple[int, str])
    entry = Entry(
        session=lease.session, seq=seq, id=new_id(), parent=leaf, at=now, turn=turn, payload=payload, trust=trust
    )
    data = encode_payload(payload)
    connection.execute(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (entry.session, seq, entry.id, leaf, now, turn, trust, str(payload.__struct_config__.tag), data),
    )
    match payload:
        case Leaf():
            leaf = payload.target
        case Label():
            pass
        case _:
            leaf = entry.id
    connection.execute(
        "UPDATE sessions SET next_seq = ?, leaf = ?, updated = ? WHERE id = ?", (seq + 1, leaf, now, lease.session)
    )
    return entry


_COLUMNS = "session, seq, id, parent, at, turn, payload, trust"


def load(connection: Connection, session: str, *, after: int = 0, limit: int = -1) -> list[Entry]:
    """The entries of a session in order, those with a `seq` above `after`, at most `limit` of them."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?", (session, after, limit)
    )
    return list(map(_entry, rows))


def load_some(connection: Connection, session: str, places: Sequence[int]) -> list[Entry]:
    """The entries of a session at these places (`seq`), in order."""
    wanted = ",".join(map(str, places))  # numbers, and more of them than a statement can have parameters
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE session = ? AND seq IN ({wanted}) ORDER BY seq", (session,)
    )
    return list(map(_entry, rows))


def _entry(row: tuple[Value, ...]) -> Entry:
    a, b, c, d, e, f, data, h = row
    assert isinstance(data, bytes)
    payload, erased = decode_payload(data), ""
    if isinstance(payload, Tombstone):
        payload, erased = decode_payload(bytes(payload.rest)), payload.sha256
    return Entry(session=a, seq=b, id=c, parent=d, at=e, turn=f, payload=payload, trust=h, erased=erased)  # pyright: ignore


def first(connection: Connection, session: str, kind: str) -> Entry | None:
    """The oldest entry of a kind in a session."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE session = ? AND kind = ? ORDER BY seq LIMIT 1", (session, kind)
    ).fetchone()
    return None if row is None else _entry(row)


def last_of_kind(connection: Connection, session: str, kind: str) -> int:
    """The place of the newest entry of a kind in a session, 0 where there is none."""
    row = connection.execute(
        "SELECT COALESCE(MAX(seq), 0) FROM entries WHERE session = ? AND kind = ?", (session, kind)
    ).fetchone()
    return convert(row, tuple[int])[0]


def trusts(connection: Connection, session: str, *, but: str = "") -> list[Trust]:
    """How far what a session holds, `but` for the entries of a kind, is trusted: each degree once."""
    rows = connection.execute("SELECT DISTINCT trust FROM entries WHERE session = ? AND kind != ?", (session, but))
    return [trust for (trust,) in convert(rows.fetchall(), list[tuple[Trust]])]


def of_kind(connection: Connection, kind: str) -> list[Entry]:
    """The entries of one kind in all sessions."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM entries WHERE kind = ? ORDER BY session, seq", (kind,))
    return list(map(_entry, rows))


def of_kind_in(connection: Connection, session: str, kind: str) -> list[Entry]:
    """The entries of one kind in a session, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE session = ? AND kind = ? ORDER BY seq", (session, kind)
    )
    return list(map(_entry, rows))


def last_seq(connection: Connection, session: str) -> int:
    """The place of the newest entry, 0 for an empty session."""
    row = connection.execute("SELECT next_seq - 1 FROM sessions WHERE id = ?", (session,)).fetchone()
    return 0 if row is None else convert(row, tuple[int])[0]
