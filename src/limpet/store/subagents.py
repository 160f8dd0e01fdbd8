"""Helpers (subagents): what each was given, how it stands, and the steps that go with other commits.

A spawned helper waits until there is room for it; then its task is an event in its own session, and it is worked on
like any other. Its end, the row for its parent's inbox and the begin of the next one are one transaction.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct, convert

from limpet.store import inbox, sessions, turns
from limpet.store.sessions import Lease
from limpet.store.sql import Connection, Value
from limpet.types.envelope import Address, Errand, Inbound, InboxRow, Spawn

State = Literal["waiting", "working", "done", "failed", "interrupted", "cancelled"]
CHANNEL = "helper"
"""Where the task of a helper comes from."""
RESULT = "helper:"
"""How events begin that tell the result of one."""
BETWEEN = ":subagent:"
SENDER = "the main agent"
HEAD = "[Task from the main agent]"
STOPPED = "[The user has stopped the helper {id} ({task}); no result of it comes.]"
SHORT = 80
_COLUMNS = "id, key, parent, session, agent, state, created, ended, answer, errand"
_errand = msgspec.json.Decoder(Errand)


class _Stored(Struct, array_like=True):
    id: str
    key: str
    parent: str
    session: str
    agent: str
    state: State
    created: int
    ended: int | None
    answer: str
    errand: bytes


class Crowd(Struct, frozen=True):
    """How many helpers work at once: of one conversation, and of all."""

    each: int = 5
    all: int = 8


class Helper(Struct, frozen=True):
    """`key` is that of its own session, `parent` that of the conversation that spawned it, `session` the id of that
    one's session. `answer` is what it said last. Times are UTC ms."""

    id: str
    key: str
    parent: str
    session: str
    agent: str
    state: State
    created: int
    ended: int | None
    answer: str
    errand: Errand

    @property
    def title(self) -> str:
        """The beginning of its task, in one line."""
        words = " ".join(self.errand.task.split())
        return words if len(words) <= SHORT else f"{words[: SHORT - 1]}…"


class Outcome(Struct, frozen=True):
    """How a helper's turn ended: its last `answer`, and the event that tells its parent."""

    state: State
    answer: str
    told: Inbound


def key_of(parent: str, helper: str) -> str:
    return f"{parent}{BETWEEN}{helper}"


def insert(connection: Connection, spawn: Spawn, crowd: Crowd, *, now: int) -> None:
    """Commit a helper once; it begins as soon as there is room."""
    connection.execute(
        "INSERT OR IGNORE INTO helpers (id, key, parent, session, agent, created, errand) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            spawn.id, key_of(spawn.parent, spawn.id), spawn.parent, spawn.session, spawn.agent, now,
            msgspec.json.encode(spawn.errand),
        ),
    )  # fmt: skip
    begin_next(connection, crowd, now=now)


def begin_next(connection: Connection, crowd: Crowd, *, now: int) -> None:
    """Have those begin that wait, the oldest first, while there is room. Who has helpers of its own takes none of the
    room for all: it may be waiting for them.
    """
    there = _found(connection, "ended IS NULL")
    parents = {one.parent for one in there}
    busy = [one for one in there if one.state == "working"]
    for one in (one for one in there if one.state == "waiting"):
        if sum(other.key not in parents for other in busy) >= crowd.all:
            return
        if sum(other.parent == one.parent for other in busy) < crowd.each:
            busy.append(one)
            _begin(connection, one, now=now)


def _begin(connection: Connection, one: Helper, *, now: int) -> None:
    errand = one.errand
    connection.execute("UPDATE helpers SET state = 'working' WHERE id = ?", (one.id,))
    session = sessions.open_live(connection, one.key, agent=one.agent, now=now, parent=one.session)
    connection.execute("UPDATE sessions SET model = ? WHERE id = ?", (errand.model, session.id))
    text = f"{HEAD}\n{errand.task}" + (f"\n\nLook above all at: {errand.focus}" if errand.focus else "")
    address = Address(channel=CHANNEL, chat=one.parent)
    task = Inbound(address=address, event=one.id, text=text, sender=SENDER, trust=errand.trust)
    inbox.receive(connection, one.key, task, now=now)


def finish(connection: Connection, lease: Lease, outcome: Outcome, *, key: str, crowd: Crowd, now: int) -> bool:
    """A turn under `key` has ended. When nothing more comes, the helper is over with its session, and its parent is
    told; whether it is.

    One that still has helpers of its own, or events, goes on when those are there. Of one that the owner has stopped
    the parent hears with its next event (`tell`), for nobody waits for it any more.
    """
    one = of_key(connection, key)
    if one is None or one.ended is not None:
        return False
    stopped = outcome.state == "cancelled"
    if not stopped and (open_under(connection, key) or inbox.waits(connection, key)):
        return False
    sessions.end(connection, lease, reason=f"helper {outcome.state}", now=now)
    sessions.owe_nothing(connection, lease.session)
    _end(connection, one, outcome.state, answer=outcome.answer, now=now)
    if not stopped and _is_there(connection, one.parent):
        inbox.receive(connection, one.parent, outcome.told, now=now)
    begin_next(connection, crowd, now=now)
    return True


def _is_there(connection: Connection, key: str) -> bool:
    """Whether anybody under `key` can be told something: a helper that is over cannot."""
    one = of_key(connection, key)
    return one is None or one.ended is None


def _end(connection: Connection, one: Helper, state: State, *, answer: str, now: int) -> None:
    told = state != "cancelled" or not _is_there(connection, one.parent)
    connection.execute(
        "UPDATE helpers SET state = ?, ended = ?, answer = ?, told = ? WHERE id = ?", (state, now, answer, told, one.id)
    )
    for row in inbox.queued(connection, one.key):
        inbox.settle(connection, row.id, state="refused", reason=f"the helper was {state}")


def stop(connection: Connection, found: list[Helper], crowd: Crowd, *, now: int) -> None:
    """Stop helpers with those of theirs: at once what has not begun, else as soon as whoever works on it sees it."""
    every = {one.id: one for top in found for one in (top, *open_under(connection, top.key))}
    for one in every.values():
        if turns.request_stop(connection, one.key):
            continue
        live = sessions.live(connection, one.key)
        if live is not None:
            sessions.end_unheld(connection, live.id, reason="helper cancelled", now=now)
        _end(connection, one, "cancelled", answer="", now=now)
    begin_next(connection, crowd, now=now)


def tell(connection: Connection, key: str) -> str:
    """What a conversation has not heard yet of helpers that were stopped; from now on it has."""
    found = _found(connection, "parent = ? AND told = 0 AND ended IS NOT NULL", key)
    connection.execute("UPDATE helpers SET told = 1 WHERE parent = ? AND told = 0 AND ended IS NOT NULL", (key,))
    return "\n".join(STOPPED.format(id=one.id, task=one.title) for one in found)


def of_key(connection: Connection, key: str) -> Helper | None:
    """The helper whose own session key is `key`."""
    if BETWEEN not in key:
        return None
    return next(iter(_found(connection, "key = ?", key)), None)


def open_under(connection: Connection, key: str) -> list[Helper]:
    """The helpers of a conversation that are not over, and those of theirs, in the order of their spawning."""
    start = f"{key}{BETWEEN}"
    return _found(connection, "ended IS NULL AND substr(key, 1, ?) = ?", len(start), start)


def all_open(connection: Connection) -> list[Helper]:
    return _found(connection, "ended IS NULL")


def newest_over(connection: Connection, key: str, *, since: int, limit: int) -> list[Helper]:
    """The helpers of a conversation, and those of theirs, that ended after `since` (UTC ms), the oldest first."""
    start = f"{key}{BETWEEN}"
    found = _found(connection, "ended > ? AND substr(key, 1, ?) = ?", since, len(start), start)
    return found[-limit:]


def cost_of(connection: Connection, key: str) -> int | None:
    """What a helper has used so far in micro-dollars; None while nothing with a known price was."""
    row = connection.execute(
        "SELECT SUM(cost) FROM usage WHERE session IN (SELECT id FROM sessions WHERE key = ?)", (key,)
    ).fetchone()
    return convert(row, tuple[int | None])[0]


def of_event(connection: Connection, key: str, event: str) -> Helper | None:
    """The helper that the event of a session key is about: its task, or the result of one of its own."""
    if event.startswith(RESULT):
        return of_key(connection, key_of(key, event.removeprefix(RESULT)))
    return None if (one := of_key(connection, key)) is None or one.id != event else one


def is_about(row: InboxRow) -> bool:
    """Whether an event is a helper's task, or the result of one: nobody has said it."""
    return row.inbound.event.startswith(RESULT) or row.inbound.address.channel == CHANNEL


def origins(connection: Connection, row: InboxRow) -> tuple[Inbound, ...]:
    """For whom an event is worked on: what people have said, also where a helper stands between."""
    about = of_event(connection, row.key, row.inbound.event)
    return about.errand.origins if about is not None else (row.inbound,)


def _found(connection: Connection, condition: str, *values: Value) -> list[Helper]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM helpers WHERE {condition} ORDER BY rowid", values).fetchall()
    return [_helper(row) for row in rows]


def _helper(values: tuple[Value, ...]) -> Helper:
    stored = convert(values, _Stored)
    return Helper(
        id=stored.id,
        key=stored.key,
        parent=stored.parent,
        session=stored.session,
        agent=stored.agent,
        state=stored.state,
        created=stored.created,
        ended=stored.ended,
        answer=stored.answer,
        errand=_errand.decode(stored.errand),
    )
