"""The ledger: each slot of a job is entered once, runs once, and ends with exactly one outcome and its reason.

Everything here is one transaction, handed to `Store.write`. A slot is entered when it comes (`enter`), its run is
claimed together with the inbox row that begins it (`claim`), and what became of that row and its turn is read back
(`settle`): after `kill -9` between any two of them the next look goes on from what the database says.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, structs

from limpet.schedule import slots
from limpet.schedule.zones import shown
from limpet.store import inbox, jobs, occurrences, outbox, peers, sessions, turns, wakes
from limpet.store.occurrences import Trace
from limpet.store.sql import Connection
from limpet.types.envelope import Address, Inbound, Part, Trust, lowest
from limpet.types.job import Job, JobRow, Occurrence, OccurrenceState

ON_TIME = 60_000
"""Milliseconds that a slot may be late before it counts as missed."""
MOST_LATE = 100
"""Missed slots that `all` makes up for, the newest of them."""
BACKOFF = (30_000, 60_000, 300_000, 900_000, 3_600_000)
"""Milliseconds before each further attempt of a failed occurrence (FEATURES K1)."""
MOST_FAILURES = 5
LOOK_AGAIN = 60_000
NOWHERE = "there is no chat of the owner to deliver it to"
TIMEOUT = "timeout"


class Said(Struct, frozen=True):
    """What a job says now, empty = as it was made, and how far that is trusted; or why it does not run (`refusal`)."""

    text: str = ""
    trust: Trust = "owner"
    refusal: str = ""


class Special(Protocol):
    """What Limpet's own jobs do otherwise than others; provided by `heartbeat`."""

    def stir(self, connection: Connection, *, now: int) -> list[Occurrence]:
        """The runs besides all schedules that what has happened asks for."""
        ...

    def refusal(self, connection: Connection, row: JobRow) -> str:
        """Why nothing of a job is to run at its slot; empty: it may."""
        ...

    def said(self, connection: Connection, job: Job, *, now: int) -> Said:
        """What a job says now. Called in the transaction that begins its run: what it takes is taken with it."""
        ...


class Ordinary:
    """Implements `Special` where all jobs are like any other."""

    def stir(self, connection: Connection, *, now: int) -> list[Occurrence]:
        return []

    def refusal(self, connection: Connection, row: JobRow) -> str:
        return ""

    def said(self, connection: Connection, job: Job, *, now: int) -> Said:
        return Said()


ORDINARY = Ordinary()


class Due(Struct, frozen=True):
    """The slots of a job that have come since `seen`: those to `run`, and those `missed`; then `due` is the next."""

    row: JobRow
    run: tuple[int, ...]
    missed: tuple[int, ...]
    due: int | None


def judge(row: JobRow, now: int) -> Due:
    """Which of the slots that have come are run. Pure: may take long, and writes nothing."""
    schedule, conduct = row.job.schedule, row.job.conduct
    assert row.due is not None
    come = slots.upto(schedule, row.due - 1, now)
    late = [at for at in come if now - at > ON_TIME]
    allowed = [at for at in come if now - at <= max(conduct.grace, ON_TIME)]
    if not late or conduct.catch_up == "all":
        run = allowed[-MOST_LATE:]
    elif conduct.catch_up == "once":
        run = allowed[-1:]
    else:
        run = [at for at in come if now - at <= ON_TIME]
    missed = tuple(at for at in come if at not in set(run))
    return Due(row, tuple(run), missed, slots.after(schedule, come[-1] if come else now))


def enter(connection: Connection, found: Due, *, now: int, refusal: str = "") -> bool:
    """Enter the slots that have come; False when somebody else has. None of them runs where there is a `refusal`."""
    job, row = found.row.job, found.row
    if not jobs.advance(connection, job.id, seen=row.due, due=found.due):
        return False
    running = [one for one in occurrences.open_of(connection, job.id) if not one.manual]
    for one in running:
        if one.state == "waiting" and one.attempt and found.run:
            _fail(connection, job, one, reason=f"{one.reason}; given up for the next one", now=now)
    busy = next((one for one in running if one.state != "waiting" or not one.attempt), None)
    if found.missed:
        _enter_missed(connection, job, found, now=now)
    if busy is not None and job.conduct.overlap == "skip":
        refusal = f"the run of {shown(busy.due, job.schedule.zone)} still went on"
    for at in found.run:
        if refusal:
            occurrences.put(connection, Occurrence(job.id, at, "skipped", ended=now, reason=refusal))
        else:
            occurrences.put(connection, Occurrence(job.id, at, "waiting", next=at + _stagger(job)))
    if found.due is None and not occurrences.open_of(connection, job.id):
        jobs.end(connection, job.id, state="over")
    return True


def _enter_missed(connection: Connection, job: Job, found: Due, *, now: int) -> None:
    missed = found.missed
    first, last = missed[0], missed[-1]
    instead = f"; one run, {shown(found.run[-1], job.schedule.zone)}, stands for it" if found.run else ""
    reason = f"nothing was running at {shown(first, job.schedule.zone)}{instead}"
    one = Occurrence(job.id, first, "missed", upto=last, count=len(missed), ended=now, reason=reason)
    if occurrences.put(connection, one) and job.schedule.kind == "at":
        _tell(connection, job, one, what=f"was missed: {reason}.", now=now)


def _stagger(job: Job) -> int:
    """Milliseconds that this job is put off, always the same."""
    return zlib.crc32(job.id.encode()) % job.conduct.stagger if job.conduct.stagger else 0


def claim(connection: Connection, one: Occurrence, *, now: int, special: Special = ORDINARY) -> str:
    """Begin the next attempt of a waiting occurrence: its event is in the inbox with the same commit.

    Gives the session key under which there is something to do now; empty when there is nothing.
    """
    known = occurrences.find(connection, one.job, one.due)
    if known is None or known.state != "waiting":
        return ""  # paused or removed meanwhile
    row = jobs.find(connection, one.job)
    if row is None:
        occurrences.end(connection, one, state="skipped", reason="the job was removed", now=now)
        return ""
    job = row.job
    late = now - one.due
    if not one.attempt and not one.manual and late > max(job.conduct.grace, ON_TIME) + job.conduct.stagger:
        reason = f"nothing was running, or all places were taken, until {shown(now, job.schedule.zone)}"
        occurrences.end(connection, one, state="missed", reason=reason, now=now)
        _tell(connection, job, one, what=f"was missed: {reason}.", now=now)
        _over(connection, job)
        return ""
    where = _address(connection, job)
    if job.says:
        _say(connection, job, one, where=where, now=now)
        return ""
    said = special.said(connection, job, now=now)
    if said.refusal:
        occurrences.end(connection, one, state="skipped", reason=said.refusal, now=now)
        return ""
    if job.key.startswith("cron:"):
        sessions.open_live(connection, job.key, agent=job.agent, now=now)
    made, _ = inbox.receive(connection, job.key, _inbound(job, one, where=where, said=said, now=now), now=now)
    occurrences.claimed(connection, one, inbox=made.id, until=now + job.conduct.timeout, now=now)
    return job.key


def event_of(one: Occurrence) -> str:
    """The name of the event that begins the next attempt: no two can have it."""
    return f"cron:{one.job}:{one.due}:{one.attempt + 1}"


def _inbound(job: Job, one: Occurrence, *, where: Address | None, said: Said, now: int) -> Inbound:
    late = now - one.due
    note = f" It is late: it was due at {shown(one.due, job.schedule.zone)} ({ago(late)})." if late > ON_TIME else ""
    head = f"[The job {job.name} is due.{note}]"
    return Inbound(
        address=where or Address(channel="cron", chat=job.id),
        event=event_of(one),
        text=f"{head}\n{said.text or job.text}",
        sender=f"the job {job.name}",
        trust=lowest((job.trust, said.trust)),
        mandate=structs.replace(job.mandate, deliver=where is not None and job.mandate.deliver),
    )


def ago(late: int) -> str:
    """`+3 h 30 min`."""
    minutes = late // 60_000
    parts = [f"{minutes // 60} h"] if minutes >= 60 else []
    return f"+{' '.join([*parts, f'{minutes % 60} min'])}"


def _say(connection: Connection, job: Job, one: Occurrence, *, where: Address | None, now: int) -> None:
    """Deliver the text of a job that asks no model: once, for its part and its outcome are one commit."""
    if where is None:
        occurrences.end(connection, one, state="failed", reason=NOWHERE, now=now)
    else:
        part = Part(where, job.text, f"cron:{job.id}:{one.due}", "notice")
        outbox.queue(connection, part, session="", turn="", now=now)
        occurrences.claimed(connection, one, inbox=0, until=0, now=now)
        late = f"late, {ago(now - one.due)}" if now - one.due > ON_TIME else ""
        occurrences.end(connection, one, state="done", reason=late, now=now)
    _over(connection, job)


def _address(connection: Connection, job: Job) -> Address | None:
    match job.delivery:
        case "chat":
            return job.address
        case "last":
            return peers.owner_home(connection)
        case "none":
            return None


def unsettled(connection: Connection, *, now: int) -> list[Occurrence]:
    """The running occurrences of which more is known than the ledger says, or whose time is over."""
    return [one for one in occurrences.running(connection) if _news(occurrences.trace(connection, one), one, now=now)]


def _news(trace: Trace, one: Occurrence, *, now: int) -> bool:
    if trace.event in ("queued", "claimed") and one.next > now:
        return trace.event == "claimed" and trace.turn != one.turn
    return True


def settle(connection: Connection, one: Occurrence, *, now: int) -> None:
    """Bring the ledger up to what inbox and turn say of an occurrence. Doing it again changes nothing."""
    trace = occurrences.trace(connection, one)
    row = jobs.find(connection, one.job)
    timeout = row.job.conduct.timeout if row else LOOK_AGAIN
    if trace.event == "queued":
        occurrences.put_off(connection, one, until=now + timeout)
    elif trace.event == "claimed" and trace.turn:
        begun = trace.started or now
        if one.turn != trace.turn:
            occurrences.started(connection, one, turn=trace.turn, begun=begun, until=begun + timeout)
        elif one.next <= now:
            turns.request_stop_of(connection, trace.turn)
            occurrences.put_off(connection, one, until=now + LOOK_AGAIN, reason=TIMEOUT)
    else:
        _outcome(connection, row.job if row else None, one, trace=trace, now=now)


def _outcome(connection: Connection, job: Job | None, one: Occurrence, *, trace: Trace, now: int) -> None:
    late = f"late, {ago(one.begun - one.due)}" if one.begun - one.due > ON_TIME and not one.manual else ""
    turn = trace.turn or ""
    match trace.state:
        case "done":
            quiet = "silent" if trace.silent and (job is None or job.mandate.deliver) else ""
            reason = ", ".join(filter(None, (late, quiet)))
            occurrences.end(connection, one, state="done", reason=reason, now=now, turn=turn)
            jobs.succeeded(connection, one.job)
        case "cancelled" if one.reason == TIMEOUT and job is not None:
            minutes = job.conduct.timeout // 60_000
            _fail(connection, job, one, reason=f"it took longer than {minutes} min and was stopped", now=now, turn=turn)
        case "cancelled":
            occurrences.end(connection, one, state="interrupted", reason="stopped", now=now, turn=turn)
        case "failed" if job is not None:
            _retry(connection, job, one, reason=trace.error or "failed", now=now, turn=turn)
        case _:
            reason = trace.error or "nothing is known of it any more"
            _fail(connection, job, one, reason=reason, now=now, turn=turn, state="interrupted")
    if job is not None:
        _over(connection, job)


def _retry(connection: Connection, job: Job, one: Occurrence, *, reason: str, now: int, turn: str) -> None:
    if one.attempt > job.conduct.retries:
        _fail(connection, job, one, reason=reason, now=now, turn=turn)
        return
    occurrences.wait(connection, one, until=now + BACKOFF[min(one.attempt, len(BACKOFF)) - 1], reason=reason)


def _fail(
    connection: Connection,
    job: Job | None,
    one: Occurrence,
    *,
    reason: str,
    now: int,
    turn: str = "",
    state: OccurrenceState = "failed",
) -> None:
    """It has failed for good: its owner is told, and after so many in a row the job is switched off."""
    occurrences.end(connection, one, state=state, reason=reason, now=now, turn=turn)
    if job is None:
        return
    if state == "failed" and job.mandate.purpose == "heartbeat" and (event := inbox.find(connection, one.inbox)):
        wakes.give_back(connection, agent=job.agent, taken=event.received)
    told = f"{'failed' if state == 'failed' else 'was interrupted'}: {reason}"
    if one.manual or jobs.count_failure(connection, job.id) < MOST_FAILURES or job.schedule.kind == "at":
        _tell(connection, job, one, what=told, now=now)
        return
    jobs.end(connection, job.id, state="disabled", reason=f"{MOST_FAILURES} failures in a row, the last: {reason}")
    told += f"\nThat was {MOST_FAILURES} times in a row, so the job is switched off: `/cron resume {job.name}`."
    _tell(connection, job, one, what=told, now=now)


def _over(connection: Connection, job: Job) -> None:
    """A job without further slots is over once nothing of it is open."""
    row = jobs.find(connection, job.id)
    if row is not None and row.state == "active" and row.due is None and not occurrences.open_of(connection, job.id):
        jobs.end(connection, job.id, state="over")


def _tell(connection: Connection, job: Job, one: Occurrence, *, what: str, now: int) -> None:
    """Tell the owner about an occurrence, once."""
    if (home := peers.owner_home(connection)) is not None:
        text = f"The job **{job.name}**, due {shown(one.due, job.schedule.zone)}, {what}"
        outbox.queue(
            connection, Part(home, text, f"cron:{job.id}:{one.due}:told", "notice"), session="", turn="", now=now
        )


def derived(connection: Connection, rows: Sequence[JobRow]) -> list[tuple[JobRow, int | None]]:
    """The active jobs whose next slot is not what schedule and ledger say (zones change), with what it should be."""
    found: list[tuple[JobRow, int | None]] = []
    for row in rows:
        if row.state == "active":
            due = slots.after(row.job.schedule, max(row.since, occurrences.newest_slot(connection, row.job.id)))
            if due != row.due:
                found.append((row, due))
    return found
