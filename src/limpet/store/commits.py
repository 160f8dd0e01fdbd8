"""The commits of a turn, in their order. Each function is one transaction, handed to `Store.write`.

1 receive  (inbox.py)   the event is stored; only now its platform is acknowledged
2 begin                 events claimed, turn running, prompt snapshot if due, user entries     (or: resume)
3 answer                an assistant message with calls, and its usage
4 started, result       the intent before an act, the outcome after it
5 end                   last answer, usage, turn and events done, outbox parts: all or nothing
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from limpet.store import approvals, entries, inbox, jobs, outbox, processes, sessions, subagents, turns, usage
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.store.subagents import Crowd, Outcome
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
from limpet.types.envelope import InboxRow, Part, Post, QueueMode, Trust
from limpet.types.job import JobChange, Outward

SHORT = 160
"""Characters that are left of a message that is shortened."""
SHORTENED = "[{count} messages waited at once. Of the oldest {short} I have read the first {length} characters each.]"

Render = Callable[[InboxRow], UserEntry | None]
"""Makes the user entry of an event; None when it is not for the model (a command), which ends the taking."""


class Queueing(Struct, frozen=True):
    """What becomes of events that come while a turn runs. A turn takes them once there were none for `debounce` ms; of
    more than `most` at once the oldest are shortened.
    """

    mode: QueueMode = "steer"
    debounce: int = 0
    most: int = 20


STEERING = Queueing()
CROWD = Crowd()


class TurnWriter(Struct, frozen=True):
    """Whose turn it is: what each commit needs to know. `key` is the session key whose events it takes."""

    lease: Lease
    turn: str
    key: str
    render: Render
    queueing: Queueing = STEERING
    crowd: Crowd = CROWD


def begin(
    connection: Connection, writer: TurnWriter, before: Sequence[Payload], *, now: int, trust: Trust = "owner"
) -> list[Entry]:
    """Commit 2: the turn runs, `before` (snapshot, notes) and the waiting events are in the log.

    Gives no entries, and begins nothing, when no event waits any more.
    """
    rows = _next(connection, writer)
    if not rows:
        return []
    turns.insert(connection, writer.turn, writer.lease.session, now=now)
    made = [
        entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=trust) for payload in before
    ]
    if writer.queueing.mode == "followup":
        rows = rows[: max(1, _results(rows))]
    return made + _take(connection, writer, rows, now=now)


def _results(rows: Sequence[InboxRow]) -> int:
    """How many events at the beginning are results of helpers: those are answered together."""
    others = (number for number, row in enumerate(rows) if not row.inbound.event.startswith(subagents.RESULT))
    return next(others, len(rows))


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


def absorb(connection: Connection, writer: TurnWriter, *, now: int, patient: bool = True) -> list[Entry]:
    """Steering: the events that wait, up to the first command, become user entries of the running turn.

    `patient`: not while the last of them has just come, for more may follow.
    """
    if writer.queueing.mode != "steer":
        return []
    rows = _next(connection, writer)
    if not rows or (patient and now - rows[-1].received < writer.queueing.debounce):
        return []
    return _take(connection, writer, rows, now=now)


def _next(connection: Connection, writer: TurnWriter) -> list[InboxRow]:
    """The events that wait, up to the first command."""
    found: list[InboxRow] = []
    for row in inbox.queued(connection, writer.key):
        if writer.render(row) is None:
            break
        found.append(row)
    return found


def _take(connection: Connection, writer: TurnWriter, rows: Sequence[InboxRow], *, now: int) -> list[Entry]:
    """Before the first one stands what the conversation has not heard yet: of commands that ended in the background,
    of helpers that were stopped, and of messages of its own that did not arrive.
    """
    made: list[Entry] = []
    told = (
        processes.tell(connection, writer.key, now=now),
        subagents.tell(connection, writer.key),
        outbox.tell(connection, writer.lease.session),
    )
    if news := "\n".join(filter(None, told)):
        note = Note(text=news, origin="commands")
        made.append(entries.append(connection, writer.lease, note, turn=writer.turn, now=now, trust="tool"))
    shortened = max(0, len(rows) - writer.queueing.most)
    for number, row in enumerate(rows):
        payload = writer.render(_short(row) if number < shortened else row)
        assert payload is not None
        inbox.take(connection, row.id, turn=writer.turn)
        made.append(
            entries.append(connection, writer.lease, payload, turn=writer.turn, now=now, trust=row.inbound.trust)
        )
    if shortened and rows[-1].inbound.mandate is None:
        text = SHORTENED.format(count=len(rows), short=shortened, length=SHORT)
        part = Part(rows[-1].inbound.address, text, f"shortened:{rows[-1].id}", "notice")
        outbox.queue(connection, part, session=writer.lease.session, turn=writer.turn, now=now)
    return made


def _short(row: InboxRow) -> InboxRow:
    text = row.inbound.text
    if len(text) <= SHORT:
        return row
    said = f"{text[:SHORT]}… [shortened, {len(text):,} characters in all]"
    return structs.replace(row, inbound=structs.replace(row.inbound, text=said))


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
    posts: Sequence[Outward] = (),
) -> list[Entry]:
    """Commit 4, second half: the outcome, with what else the call put on record and says in other conversations."""
    for post in posts:
        if isinstance(post, Part):
            outbox.queue(connection, post, session=writer.lease.session, turn="", now=now)
        elif isinstance(post, JobChange):
            jobs.apply(connection, post)
        elif isinstance(post, Post):
            inbox.receive(connection, post.key, post.inbound, now=now)
        else:
            subagents.insert(connection, post, writer.crowd, now=now)
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
    of the entry or the turn. `outcome` is for a helper's: what its parent is told, should it be over with it."""

    state: TurnState
    answer: AssistantEntry | None = None
    results: tuple[ToolResultEntry, ...] = ()
    reservation: str = ""
    records: tuple[Payload, ...] = ()
    parts: tuple[Part, ...] = ()
    error: str = ""
    trust: Trust = "owner"
    outcome: Outcome | None = None


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
        more = absorb(connection, writer, now=now, patient=False)
        if more:
            return made + more, False
    turns.end(connection, turn, state=ending.state, now=now, error=ending.error)
    approvals.end_turn(connection, turn, now=now)
    inbox.settle_turn(connection, turn)
    outcome, key = ending.outcome, writer.key
    if outcome is None or not subagents.finish(connection, lease, outcome, key=key, crowd=writer.crowd, now=now):
        sessions.release(connection, lease)
    return made, True
