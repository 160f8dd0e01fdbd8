"""Approvals: what waits for the owner's word, stored before anybody is asked. The SQL of the table `approvals`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct, convert

from limpet.store import audit
from limpet.store.sql import Connection, Value
from limpet.types.approval import Approval, Outcome, Reply, Wanted

_wanted = msgspec.json.Decoder(Wanted)
_COLUMNS = "id, session, key, turn, agent, wanted, owner, process, created, expires, outcome, answer, by, at, revoked"


class _Stored(Struct, array_like=True):
    id: str
    session: str
    key: str
    turn: str
    agent: str
    wanted: bytes
    owner: str
    process: str
    created: int
    expires: int
    outcome: Outcome
    text: str
    by: str
    at: int
    revoked: int


class Place(Struct, frozen=True):
    """Where an approval is wanted: which turn of which session, for whom to decide, shown by which process."""

    session: str
    key: str
    turn: str
    agent: str
    owner: str
    process: str


def insert(connection: Connection, wanted: Wanted, place: Place, *, now: int, lasts: int) -> Approval:
    """Store what is wanted, open for `lasts` ms. An open one of the same call with another plan is void."""
    connection.execute(
        "UPDATE approvals SET outcome = 'ended', at = ? WHERE turn = ? AND call = ? AND outcome = ''",
        (now, place.turn, wanted.call),
    )
    name = secrets.token_hex(4)
    connection.execute(
        "INSERT INTO approvals (id, session, key, turn, call, agent, hash, wanted, owner, process, created, expires)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            name,
            place.session,
            place.key,
            place.turn,
            wanted.call,
            place.agent,
            wanted.hash,
            msgspec.json.encode(wanted),
            place.owner,
            place.process,
            now,
            now + lasts,
        ),
    )
    (made,) = _select(connection, "id = ?", (name,))
    return made


def of_call(connection: Connection, turn: str, wanted: Wanted) -> Approval | None:
    """What was asked for exactly this plan of this call, as it stands now."""
    rows = _select(
        connection,
        "turn = ? AND call = ? AND hash = ? ORDER BY created DESC, rowid DESC LIMIT 1",
        (turn, wanted.call, wanted.hash),
    )
    return rows[0] if rows else None


def calls_of(connection: Connection, session: str) -> set[str]:
    """The names of the calls of a session that somebody was asked about."""
    rows = connection.execute("SELECT DISTINCT call FROM approvals WHERE session = ?", (session,))
    return {name for (name,) in convert(rows.fetchall(), list[tuple[str]])}


def grant_of(connection: Connection, agent: str, plan: str) -> Approval | None:
    """The `always` that covers exactly the plan with this hash, for one agent."""
    rows = _select(connection, "agent = ? AND hash = ? AND outcome = 'always' AND revoked = 0 LIMIT 1", (agent, plan))
    return rows[0] if rows else None


def open_under(connection: Connection, key: str, *, now: int) -> list[Approval]:
    """What waits for a word under a session key, oldest first."""
    return _select(connection, "key = ? AND outcome = '' AND expires > ? ORDER BY created, rowid", (key, now))


def open_for(connection: Connection, owner: str, start: str, *, now: int) -> list[Approval]:
    """What waits for the word of `owner` under any key and has an id that begins with `start`."""
    return _select(
        connection,
        "owner = ? AND substr(id, 1, ?) = ? AND outcome = '' AND expires > ? ORDER BY created, rowid",
        (owner, len(start), start, now),
    )


def entrust(connection: Connection, name: str, *, owner: str) -> None:
    """One that only this machine's terminal could decide is put to an account of the owner's."""
    connection.execute("UPDATE approvals SET owner = ? WHERE id = ? AND owner = 'cli'", (owner, name))


def matching(connection: Connection, start: str) -> list[Approval]:
    """Those whose id begins with `start`, at most ten."""
    return _select(connection, "substr(id, 1, ?) = ? LIMIT 10", (len(start), start))


def recent(connection: Connection, shown: Literal["open", "always", "all"], *, now: int) -> list[Approval]:
    """The newest fifty: those that wait, the grants in force, or all."""
    conditions = {
        "open": "outcome = '' AND expires > ?1",
        "always": "outcome = 'always' AND revoked = 0 AND ?1 >= 0",
        "all": "?1 >= 0",
    }
    return _select(connection, f"{conditions[shown]} ORDER BY created DESC, rowid DESC LIMIT 50", (now,))


def show(connection: Connection, name: str, *, process: str) -> None:
    """Remember which process shows it to a person; empty: none any more."""
    connection.execute("UPDATE approvals SET process = ? WHERE id = ?", (process, name))


def decide(connection: Connection, name: str, reply: Reply, *, by: str, now: int) -> bool:
    """Settle an open one; False when it was settled before, or is too old."""
    connection.execute(
        "UPDATE approvals SET outcome = ?, answer = ?, by = ?, at = ? WHERE id = ? AND outcome = '' AND expires > ?",
        (reply.word, reply.text, by, now, name, now),
    )
    if not connection.changes():
        return False
    audit.append(connection, "approval.decided", name, detail=f"{reply.word} by {by}", now=now)
    return True


def expire(connection: Connection, name: str, *, now: int) -> None:
    """Nobody has answered in time."""
    connection.execute("UPDATE approvals SET outcome = 'expired', at = ? WHERE id = ? AND outcome = ''", (now, name))


def revoke(connection: Connection, name: str, *, now: int) -> bool:
    """End an `always`; False when there was none in force."""
    connection.execute(
        "UPDATE approvals SET revoked = ? WHERE id = ? AND outcome = 'always' AND revoked = 0", (now, name)
    )
    if not connection.changes():
        return False
    audit.append(connection, "approval.revoked", name, now=now)
    return True


def deny_under(connection: Connection, key: str, *, by: str, now: int) -> None:
    """Settle all that waits under a session key as denied."""
    connection.execute(
        "UPDATE approvals SET outcome = 'deny', by = ?, at = ? WHERE key = ? AND outcome = ''", (by, now, key)
    )


def end_turn(connection: Connection, turn: str, *, now: int) -> None:
    """A turn is over: nobody needs to decide any more."""
    connection.execute("UPDATE approvals SET outcome = 'ended', at = ? WHERE turn = ? AND outcome = ''", (now, turn))


def hold(connection: Connection, names: Sequence[str], *, now: int) -> bool:
    """A turn is about to wait for all of these; False, and nothing happens, when one is settled or too old."""
    marks = ", ".join("?" * len(names))
    row = connection.execute(
        f"SELECT COUNT(*) FROM approvals WHERE id IN ({marks}) AND outcome = '' AND expires > ?", (*names, now)
    ).fetchone()
    if row != (len(names),):
        return False
    connection.execute(f"UPDATE approvals SET holds = 1 WHERE id IN ({marks})", tuple(names))
    return True


def is_ready(connection: Connection, turn: str, *, now: int) -> bool:
    """Whether a waiting turn can go on: one of those it waits for is settled, or too old; or it waits for none."""
    row = connection.execute(
        "SELECT COUNT(*), COALESCE(SUM(outcome != '' OR expires <= ?), 0) FROM approvals WHERE turn = ? AND holds = 1",
        (now, turn),
    ).fetchone()
    held, settled = convert(row, tuple[int, int])
    return not held or settled > 0


def let_go(connection: Connection, turn: str) -> None:
    """A turn goes on."""
    connection.execute("UPDATE approvals SET holds = 0 WHERE turn = ?", (turn,))


def last_decided(connection: Connection, turn: str) -> int:
    """When the newest one of a turn was settled; 0 when none was."""
    row = connection.execute("SELECT COALESCE(MAX(at), 0) FROM approvals WHERE turn = ?", (turn,)).fetchone()
    return convert(row, tuple[int])[0]


def _select(connection: Connection, condition: str, values: tuple[Value, ...]) -> list[Approval]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM approvals WHERE {condition}", values)
    return [_approval(convert(row, _Stored)) for row in rows]


def _approval(row: _Stored) -> Approval:
    return Approval(
        id=row.id,
        session=row.session,
        key=row.key,
        turn=row.turn,
        agent=row.agent,
        wanted=_wanted.decode(row.wanted),
        owner=row.owner,
        process=row.process,
        created=row.created,
        expires=row.expires,
        outcome=row.outcome,
        text=row.text,
        by=row.by,
        at=row.at,
        revoked=row.revoked,
    )
