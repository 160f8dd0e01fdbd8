"""The ledger of jobs: one row for each slot that has come, with what became of it."""

from __future__ import annotations

from msgspec import Struct, convert

from limpet.store.sql import Connection, Value
from limpet.store.turns import TurnState
from limpet.types.envelope import InboxState
from limpet.types.job import Occurrence, OccurrenceState

_COLUMNS = (
    "job, due, occurrences.state, upto, count, attempt, next, inbox, turn, begun, occurrences.ended, reason, manual"
)
_COST = "(SELECT SUM(cost) FROM usage WHERE usage.turn = occurrences.turn AND usage.turn != '')"
"""What was spent is known for longer than the turn is kept."""


class _Stored(Struct, array_like=True):
    job: str
    due: int
    state: OccurrenceState
    upto: int
    count: int
    attempt: int
    next: int
    inbox: int
    turn: str
    begun: int
    ended: int
    reason: str
    manual: int
    cost: int | None = None


class Trace(Struct, frozen=True, array_like=True):
    """What inbox and turns know of the newest attempt of an occurrence; None for what is not there."""

    event: InboxState | None
    turn: str | None
    state: TurnState | None
    started: int | None
    error: str | None
    silent: int


def put(connection: Connection, one: Occurrence) -> bool:
    """Enter a slot; False, and nothing happens, when it is there already."""
    connection.execute(
        "INSERT INTO occurrences (job, due, upto, count, state, next, ended, reason, manual)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (one.job, one.due, one.upto or one.due, one.count, one.state, one.next, one.ended, one.reason, one.manual),
    )
    return connection.changes() > 0


def find(connection: Connection, job: str, due: int) -> Occurrence | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM occurrences WHERE job = ? AND due = ?", (job, due)).fetchone()
    return None if row is None else _row(row)


def claimed(connection: Connection, one: Occurrence, *, inbox: int, until: int, now: int) -> None:
    """A new attempt begins: its event is in the inbox, and it has to be over by `until`."""
    connection.execute(
        "UPDATE occurrences SET state = 'claimed', attempt = attempt + 1, inbox = ?, turn = '', next = ?, begun = ?"
        " WHERE job = ? AND due = ?",
        (inbox, until, now, one.job, one.due),
    )


def started(connection: Connection, one: Occurrence, *, turn: str, begun: int, until: int) -> None:
    """A turn runs it."""
    connection.execute(
        "UPDATE occurrences SET state = 'started', turn = ?, begun = ?, next = ? WHERE job = ? AND due = ?",
        (turn, begun, until, one.job, one.due),
    )


def put_off(connection: Connection, one: Occurrence, *, until: int, reason: str = "") -> None:
    """It is looked at again at `until`; `reason`, where given, is why."""
    connection.execute(
        "UPDATE occurrences SET next = ?, reason = coalesce(nullif(?, ''), reason) WHERE job = ? AND due = ?",
        (until, reason, one.job, one.due),
    )


def wait(connection: Connection, one: Occurrence, *, until: int, reason: str) -> None:
    """Its attempt has failed; another one may begin at `until`."""
    connection.execute(
        "UPDATE occurrences SET state = 'waiting', next = ?, reason = ? WHERE job = ? AND due = ?",
        (until, reason, one.job, one.due),
    )


def end(
    connection: Connection, one: Occurrence, *, state: OccurrenceState, reason: str, now: int, turn: str = ""
) -> None:
    """What has become of it, for good."""
    connection.execute(
        "UPDATE occurrences SET state = ?, reason = ?, ended = ?, next = 0, turn = coalesce(nullif(?, ''), turn)"
        " WHERE job = ? AND due = ?",
        (state, reason, now, turn, one.job, one.due),
    )


def waiting(connection: Connection, *, now: int, limit: int) -> list[Occurrence]:
    """Those that may begin now, the longest due first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM occurrences INDEXED BY occurrences_waiting WHERE state = 'waiting' AND next <= ?"
        " ORDER BY next, due, job LIMIT ?",
        (now, limit),
    )
    return [_row(row) for row in rows]


def running(connection: Connection) -> list[Occurrence]:
    """Those that are claimed or started."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM occurrences INDEXED BY occurrences_running WHERE state IN ('claimed', 'started')"
        " ORDER BY next"
    )
    return [_row(row) for row in rows]


def count_running(connection: Connection) -> int:
    row = connection.execute(
        "SELECT COUNT(*) FROM occurrences INDEXED BY occurrences_running WHERE state IN ('claimed', 'started')"
    ).fetchone()
    return convert(row, tuple[int])[0]


def wake(connection: Connection, *, waiting: bool) -> int | None:
    """When the next one has to be over or, with `waiting`, may begin."""
    states = [("occurrences_running", "state IN ('claimed', 'started')")]
    if waiting:
        states.append(("occurrences_waiting", "state = 'waiting'"))
    found: list[int] = []
    for index, state in states:
        row = connection.execute(
            f"SELECT next FROM occurrences INDEXED BY {index} WHERE {state} ORDER BY next LIMIT 1"
        ).fetchone()
        if row is not None:
            found.append(convert(row, tuple[int])[0])
    return min(found, default=None)


def open_of(connection: Connection, job: str) -> list[Occurrence]:
    """Those of a job that have not ended."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM occurrences WHERE job = ? AND ended = 0 ORDER BY due",
        (job,),
    )
    return [_row(row) for row in rows]


def last_begun(connection: Connection, job: str) -> int:
    """When the newest run of a job began (UTC ms); 0 when none did."""
    row = connection.execute("SELECT max(begun) FROM occurrences WHERE job = ?", (job,)).fetchone()
    return convert(row, tuple[int | None])[0] or 0


def newest_slot(connection: Connection, job: str) -> int:
    """The newest slot of a job's schedule that is in the ledger; 0 when none is."""
    row = connection.execute("SELECT max(upto) FROM occurrences WHERE job = ? AND NOT manual", (job,)).fetchone()
    return convert(row, tuple[int | None])[0] or 0


def trace(connection: Connection, one: Occurrence) -> Trace:
    """What is known of its newest attempt."""
    row = connection.execute(
        "SELECT inbox.state, inbox.turn, turns.state, turns.started, turns.error,"
        " NOT EXISTS (SELECT 1 FROM outbox INDEXED BY outbox_turn WHERE outbox.turn = inbox.turn AND turn != '')"
        " FROM inbox LEFT JOIN turns ON turns.id = inbox.turn WHERE inbox.id = ?",
        (one.inbox,),
    ).fetchone()
    return Trace(None, None, None, None, None, 1) if row is None else convert(row, Trace)


def history(connection: Connection, *, job: str = "", limit: int = 50) -> list[Occurrence]:
    """The newest rows (of a job), with what they cost."""
    rows = connection.execute(
        f"SELECT {_COLUMNS}, {_COST} FROM occurrences WHERE job = coalesce(nullif(?, ''), job)"
        " ORDER BY due DESC, job LIMIT ?",
        (job, limit),
    )
    return [_row(row) for row in rows]


def forget(connection: Connection, *, before: int) -> int:
    """Delete rows that ended before a moment, but for the newest slot of each job; how many."""
    connection.execute(
        "DELETE FROM occurrences WHERE ended > 0 AND ended < ? AND due < (SELECT max(other.due) FROM occurrences AS"
        " other WHERE other.job = occurrences.job AND NOT other.manual)",
        (before,),
    )
    return connection.changes()


def _row(values: tuple[Value, ...]) -> Occurrence:
    stored = convert(values, _Stored)
    return Occurrence(
        job=stored.job,
        due=stored.due,
        state=stored.state,
        upto=stored.upto,
        count=stored.count,
        attempt=stored.attempt,
        next=stored.next,
        inbox=stored.inbox,
        turn=stored.turn,
        begun=stored.begun,
        ended=stored.ended,
        reason=stored.reason,
        manual=bool(stored.manual),
        cost=stored.cost,
    )
