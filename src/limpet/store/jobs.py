"""Jobs: their rows, and the changes people and the agent make to them. The ledger of their slots is `occurrences`."""

from __future__ import annotations

import msgspec
from msgspec import Struct, convert

from limpet.store import audit
from limpet.store.sql import Connection, Value
from limpet.types.job import Job, JobChange, JobRow, JobState

_job = msgspec.json.Decoder(Job)
_encoder = msgspec.json.Encoder()
_COLUMNS = "payload, state, since, due, failures, reason, created"


class _Stored(Struct, array_like=True):
    payload: bytes
    state: JobState
    since: int
    due: int | None
    failures: int
    reason: str
    created: int


def apply(connection: Connection, change: JobChange) -> bool:
    """Do what a change says; False when there is no such job (any more), or another one has the name.

    The audit hears of it, unless it is only a run, or Limpet's own heartbeat.
    """
    before = find(connection, change.id)
    done = _apply(connection, change)
    job = change.job or (before.job if before is not None else None)
    if done and job is not None and change.act != "run" and job.mandate.purpose != "heartbeat":
        act = change.act if change.act != "put" else "edit" if before is not None else "add"
        audit.append(connection, "job.changed", change.id, detail=_told(act, job, change), now=change.at)
    return done


def _told(act: str, job: Job, change: JobChange) -> str:
    """What is changed, by whom, and what it may do unasked: no word of what it is to do."""
    address = job.address
    parts = {
        "by": change.by or "cli",
        "grants": ",".join(job.mandate.grants),
        "tools": ",".join(job.mandate.tools),
        "to": f"{address.channel}:{address.chat}" if address is not None else job.delivery,
    }
    shown = parts if change.job is not None else {"by": parts["by"]}
    return " ".join([act, *(f"{name}={value}" for name, value in shown.items() if value)])


def _apply(connection: Connection, change: JobChange) -> bool:
    match change.act:
        case "put":
            return change.job is not None and _put(connection, change.job, due=change.due, now=change.at)
        case "remove":
            _skip_waiting(connection, change, "the job was removed")
            connection.execute("DELETE FROM jobs WHERE id = ?", (change.id,))
        case "pause":
            _skip_waiting(connection, change, "the job was paused")
            connection.execute("UPDATE jobs SET state = 'paused', due = NULL WHERE id = ?", (change.id,))
        case "resume":
            connection.execute(
                "UPDATE jobs SET state = 'active', due = ?, since = ?, failures = 0, reason = '' WHERE id = ?",
                (change.due, change.at, change.id),
            )
        case "run":
            connection.execute(
                "INSERT INTO occurrences (job, due, upto, state, next, manual)"
                " SELECT id, ?2, ?2, 'waiting', ?2, 1 FROM jobs WHERE id = ?1 ON CONFLICT DO NOTHING",
                (change.id, change.at),
            )
    return connection.changes() > 0


def _put(connection: Connection, job: Job, *, due: int | None, now: int) -> bool:
    """Store a job, or what it has become: slots before now do not count any more."""
    taken = connection.execute(
        "SELECT 1 FROM jobs WHERE agent = ? AND name = ? AND id != ?", (job.agent, job.name, job.id)
    ).fetchone()
    if taken is not None:
        return False
    connection.execute(
        "INSERT INTO jobs (id, agent, name, state, since, due, created, payload) VALUES (?1, ?2, ?3, 'active', ?4, ?5,"
        " ?4, ?6) ON CONFLICT (id) DO UPDATE SET name = ?3, state = 'active', since = ?4, due = ?5, failures = 0,"
        " reason = '', payload = ?6",
        (job.id, job.agent, job.name, now, due, _encoder.encode(job)),
    )
    return True


def rewrite(connection: Connection, job: Job) -> None:
    """Store what a job has become, with its state and its place in time as they are."""
    connection.execute("UPDATE jobs SET name = ?, payload = ? WHERE id = ?", (job.name, _encoder.encode(job), job.id))


def _skip_waiting(connection: Connection, change: JobChange, reason: str) -> None:
    connection.execute(
        "UPDATE occurrences SET state = 'skipped', ended = ?, next = 0, reason = ? WHERE job = ? AND state = 'waiting'",
        (change.at, reason, change.id),
    )


def find(connection: Connection, job: str) -> JobRow | None:
    found = connection.execute(f"SELECT {_COLUMNS} FROM jobs WHERE id = ?", (job,)).fetchone()
    return None if found is None else _row(found)


def named(connection: Connection, name: str, *, agent: str = "") -> list[JobRow]:
    """The jobs (of an agent) of that name or id."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE (name = ?1 OR id = ?1) AND agent = coalesce(nullif(?2, ''), agent)"
        " ORDER BY created, id",
        (name, agent),
    )
    return [_row(row) for row in rows]


def listed(connection: Connection, *, agent: str = "", over: bool = True) -> list[JobRow]:
    """All jobs (of an agent), those that are due next first; those that are `over` last, or not at all."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM jobs WHERE agent = coalesce(nullif(?1, ''), agent) AND (?2 OR state != 'over')"
        " ORDER BY due IS NULL, due, created, id",
        (agent, over),
    )
    return [_row(row) for row in rows]


def due(connection: Connection, *, now: int, limit: int) -> list[JobRow]:
    """The jobs with slots up to now that are not in the ledger, the longest due first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM jobs INDEXED BY jobs_due WHERE due <= ? ORDER BY due LIMIT ?", (now, limit)
    )
    return [_row(row) for row in rows]


def next_due(connection: Connection) -> int | None:
    """When the next slot of any job is."""
    row = connection.execute(
        "SELECT due FROM jobs INDEXED BY jobs_due WHERE due IS NOT NULL ORDER BY due LIMIT 1"
    ).fetchone()
    return None if row is None else convert(row, tuple[int])[0]


def advance(connection: Connection, job: str, *, seen: int | None, due: int | None) -> bool:
    """The slots before `due` are in the ledger now; False, and nothing happens, when its next one is not `seen`."""
    connection.execute("UPDATE jobs SET due = ? WHERE id = ? AND due IS ? AND state = 'active'", (due, job, seen))
    return connection.changes() > 0


def count_failure(connection: Connection, job: str) -> int:
    """One more failure in a row; how many there are."""
    connection.execute("UPDATE jobs SET failures = failures + 1 WHERE id = ?", (job,))
    row = connection.execute("SELECT failures FROM jobs WHERE id = ?", (job,)).fetchone()
    return 0 if row is None else convert(row, tuple[int])[0]


def succeeded(connection: Connection, job: str) -> None:
    connection.execute("UPDATE jobs SET failures = 0 WHERE id = ? AND failures > 0", (job,))


def end(connection: Connection, job: str, *, state: JobState, reason: str = "") -> None:
    """The job is over, or disabled: it has no further slots."""
    connection.execute("UPDATE jobs SET state = ?, reason = ?, due = NULL WHERE id = ?", (state, reason, job))


def _row(values: tuple[Value, ...]) -> JobRow:
    stored = convert(values, _Stored)
    return JobRow(
        job=_job.decode(stored.payload),
        state=stored.state,
        since=stored.since,
        due=stored.due,
        failures=stored.failures,
        reason=stored.reason,
        created=stored.created,
    )
