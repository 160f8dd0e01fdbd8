"""The commits of a turn, in their order. Each function is one transaction, handed to `Store.write`.

1 receive  (inbox.py)   the event is stored; only now its platform is acknowledged
2 begin                 events claimed, turn running, prompt snapshot if due, user entries     (or: resume)
3 answer                an assistant message with calls, and its usage
4 started, result       the intent before an act, the outcome after it
5 end                   last answer, usage, turn and events done, outbox parts: all or nothing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from limpet.store import approvals, entries, inbox, outbox, processes, sessions, turns, usage
from limpet.store.outbox import Part
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.store.turns import TurnState
from limpet.types.entry import (
    AssistantEntry,
    Entry,
    Note,
    Payload,
    PromptEntry,
    ToolResultEntry,
    ToolStarted,
    UndoPoint,
    UserEntry,
)
from limpet.types.envelope import InboxRow, Post, Trust

Render = Callable[[InboxRow], UserEntry | None]
"""Makes the user entry of an event; None when it is not for the model (a command), which ends the taking."""


class TurnWriter(Struct, frozen=True):
    """Whose turn it is: what each commit needs to know. `key` is the session key whose events it takes."""

    lease: Lease
    turn: str
    key: str
    render: Render


def begin(
    connection: Connection, writer: TurnWriter, before: Sequence[Payload], *, now: int, trust: Trust = "owner"
) -> list[Entry]:
    """Commit 2: the turn runs, `before` (snapshot, notes) and the waiting events are in the log.

    Gives no entries, and begins nothing, when no event waits any more.
    """
    rows = inbox.queued(connection, writer.key)
    if not rows or writer.render(rows[0]) is None:
        return []
    turns.insert(connection, writer.turn, writer.lease.session, now=now)
    made = [
        entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=trust) for payload in before
    ]
    return made + absorb(connection, writer, now=now)


def resume(
    connection: Connection, writer: TurnWriter, before: Sequence[Payload], *, now: int, trust: Trust = "owner"
) -> None:
    """Commit 2 of a turn that was interrupted, or waited for its owner: it goes on under the new lease.

    Of `before` only a snapshot goes in (another model goes on with the turn): a note would come between calls and
    their results.
    """
    if not sessions.fresh(connection, writer.lease):
        raise sessions.lost(writer.lease)
    turns.go_on(connection, writer.turn)
    approvals.let_go(connection, writer.turn)
    for payload in before:
        if isinstance(payload, PromptEntry):
            entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=trust)


def begin_again(connection: Connection, lease: Lease, *, turn: str, row: int, now: int) -> None:
    """Commit 2 of a turn that tries again what is already in the log; `row` is the event that asked for it."""
    if not sessions.fresh(connection, lease):
        raise sessions.lost(lease)
    turns.insert(connection, turn, lease.session, now=now)
    inbox.take(connection, row, turn=turn)


def absorb(connection: Connection, writer: TurnWriter, *, now: int) -> list[Entry]:
    """Steering: the events that wait, up to the first command, become user entries of the running turn.

    Before the first one stands what the conversation has not heard yet of commands that ended in the background.
    """
    made: list[Entry] = []
    for row in inbox.queued(connection, writer.key):
        payload = writer.render(row)
        if payload is None:
            break
        if not made and (ended := processes.tell(connection, writer.key)):
            note = Note(text=ended, origin="commands")
            made.append(entries.append(connection, writer.lease, note, turn=writer.turn, now=now, trust="tool"))
        inbox.take(connection, row.id, turn=writer.turn)
        made.append(
            entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=row.inbound.trust)
        )
    return made


def answer(
    connection: Connection, writer: TurnWriter, payload: AssistantEntry, *, reservation: str, trust: Trust, now: int
) -> Entry:
    """Commit 3: an answer with calls, before any of them runs."""
    entry = entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=trust)
    if reservation:
        usage.settle(connection, reservation, payload.message.usage, state="done")
    return entry


def started(connection: Connection, writer: TurnWriter, payload: ToolStarted | UndoPoint, *, now: int) -> Entry:
    """Commit 4, first half: the intent, and what is kept to undo it.

    The act may follow once this is on disk and the lease is fresh.
    """
    return entries.append(connection, writer.lease, payload, turn=writer.turn, now=now)


def result(
    connection: Connection,
    writer: TurnWriter,
    payloads: Sequence[Payload],
    *,
    trust: Trust,
    now: int,
    posts: Sequence[Post] = (),
) -> list[Entry]:
    """Commit 4, second half: the outcome, with what else the call put on record and says in other conversations."""
    for post in posts:
        inbox.receive(connection, post.key, post.inbound, now=now)
    return [
        entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=trust)
        for payload in payloads
    ]


def note(connection: Connection, writer: TurnWriter, payload: Note, *, now: int) -> Entry:
    return entries.append(connection, writer.lease, payload, turn=writer.turn, now=now)


class Addition(Struct, frozen=True):
    """What Limpet itself adds to a log between answers: under which lease, in which turn (if one runs), and at which
    `leaf` it was decided."""

    lease: Lease
    turn: str
    leaf: str
    trust: Trust


def add(connection: Connection, addition: Addition, payloads: Sequence[Payload], *, now: int) -> list[Entry]:
    """Summaries, prunes, notes: all or nothing. Raises `LeaseLostError`, also when the log has grown since."""
    lease = addition.lease
    if not sessions.fresh(connection, lease) or sessions.leaf(connection, lease.session) != addition.leaf:
        raise sessions.lost(lease)
    return [
        entries.append(connection, lease, payload, turn=addition.turn, now=now, trust=addition.trust)
        for payload in payloads
    ]


def wait(connection: Connection, writer: TurnWriter, names: Sequence[str], *, now: int) -> bool:
    """The turn waits for its owner to settle the approvals `names`, and gives its lease back.

    False, and nothing happens, when one of them has been settled meanwhile.
    """
    if not sessions.fresh(connection, writer.lease):
        raise sessions.lost(writer.lease)
    if not approvals.hold(connection, names, now=now):
        return False
    turns.wait(connection, writer.turn)
    sessions.release(connection, writer.lease)
    return True


class End(Struct, frozen=True):
    """How a turn ends. `answer` is its last one, if it has one, and `records` follow it in the log; `parts` get the key
    of the entry or the turn."""

    state: TurnState
    answer: AssistantEntry | None = None
    results: tuple[ToolResultEntry, ...] = ()
    reservation: str = ""
    records: tuple[Payload, ...] = ()
    parts: tuple[Part, ...] = ()
    error: str = ""
    trust: Trust = "owner"


def end(connection: Connection, writer: TurnWriter, ending: End, *, now: int) -> tuple[list[Entry], bool]:
    """Commit 5: everything the turn leaves behind, in one transaction; gives the entries and whether it is over.

    A turn that is `done` while more events wait goes on with them: its answer is delivered all the same.
    The lease is given back with the last commit.
    """
    lease, turn = writer.lease, writer.turn
    if not sessions.fresh(connection, lease):
        raise sessions.lost(lease)
    made = [
        entries.append(connection, lease, payload, turn=turn, now=now, trust=ending.trust)
        for payload in (*ending.results, *((ending.answer,) if ending.answer else ()), *ending.records)
    ]
    if ending.answer is not None and ending.reservation:
        usage.settle(connection, ending.reservation, ending.answer.message.usage, state="done")
    for part in ending.parts:
        outbox.queue(connection, part, session=lease.session, turn=turn, now=now)
    if ending.state == "done":
        more = absorb(connection, writer, now=now)
        if more:
            return made + more, False
    turns.end(connection, turn, state=ending.state, now=now, error=ending.error)
    approvals.end_turn(connection, turn, now=now)
    inbox.settle_turn(connection, turn)
    sessions.release(connection, lease)
    return made, True
