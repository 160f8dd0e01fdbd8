"""Jobs: what is to be done at times, and the ledger of when it was. All moments are UTC milliseconds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limpet.types.envelope import Address, Mandate, Part, Post, Spawn, Trust

ScheduleKind = Literal["at", "every", "cron"]
CatchUp = Literal["skip", "once", "all"]
"""What becomes of slots that were missed: nothing, one late run for all of them, or one for each."""
Overlap = Literal["skip", "queue"]
"""What becomes of a slot while an earlier run of the same job still goes on."""
Delivery = Literal["last", "chat", "none"]
"""Where answers go: to the owner's newest chat, to the job's own address, nowhere."""
JobState = Literal["active", "paused", "disabled", "over"]
OccurrenceState = Literal["waiting", "claimed", "started", "done", "failed", "missed", "skipped", "interrupted"]
OPEN: tuple[OccurrenceState, ...] = ("waiting", "claimed", "started")


class Schedule(Struct, frozen=True, omit_defaults=True):
    """When: `said` is how it was written, `zone` an IANA name.

    `at` is the one moment of kind `at`; `every` ms from `anchor` on; `expression` has the five fields of cron.
    """

    kind: ScheduleKind
    said: str
    zone: str
    at: int = 0
    every: int = 0
    anchor: int = 0
    expression: str = ""


class Conduct(Struct, frozen=True, omit_defaults=True):
    """How the runs of a job go: `grace` is how late one may begin, `timeout` how long it may take, `stagger` up to how
    much it may be put off so that not all begin at once (milliseconds); `retries` is how often a failed one is tried
    again."""

    catch_up: CatchUp = "once"
    grace: int = 6 * 3_600_000
    overlap: Overlap = "skip"
    timeout: int = 30 * 60_000
    retries: int = 3
    stagger: int = 0


class Job(Struct, frozen=True, omit_defaults=True):
    """What `agent` is to do, under the session `key`; `says`: no model is asked, `text` is delivered as it is.

    `address` is where its answers go when `delivery` is `chat`. `trust` is that of who made it.
    """

    id: str
    name: str
    agent: str
    schedule: Schedule
    text: str
    key: str
    mandate: Mandate
    delivery: Delivery = "last"
    address: Address | None = None
    says: bool = False
    trust: Trust = "owner"
    conduct: Conduct = Conduct()


class JobRow(Struct, frozen=True):
    """A stored job. Slots up to `since` do not count; `due` is the next one that is not in the ledger, None = none.

    `failures` counts those in a row; `reason` says why it is disabled.
    """

    job: Job
    state: JobState
    since: int
    due: int | None
    failures: int
    reason: str
    created: int


class Occurrence(Struct, frozen=True):
    """One slot of a job: what became of it, and why.

    `upto` and `count` are more than itself where one row stands for several missed slots. `next` is when it may begin
    (`waiting`) or has to be over. `inbox` and `turn` are those of the newest attempt, `cost` is in micro-dollars.
    """

    job: str
    due: int
    state: OccurrenceState
    upto: int = 0
    count: int = 1
    attempt: int = 0
    next: int = 0
    inbox: int = 0
    turn: str = ""
    begun: int = 0
    ended: int = 0
    reason: str = ""
    manual: bool = False
    cost: int | None = None


class JobWish(Struct, frozen=True):
    """A job as it is asked for in a conversation: `when` is a moment, `every …` or five fields of cron, `says` that
    `text` is delivered as it is. `to` names another chat; empty: here. `main`: in the main session. `grants` and
    `model` are only the owner's to give."""

    text: str
    says: bool = False
    when: str = ""
    zone: str = ""
    name: str = ""
    to: str = ""
    main: bool = False
    model: str = ""
    grants: tuple[str, ...] = ()


JobAct = Literal["remove", "pause", "resume", "run"]


class JobChange(Struct, frozen=True):
    """A change of the jobs, for one commit: `job` is stored as given, with its next slot `due`; or the job called `id`
    is `remove`d, `pause`d, `resume`d from `at` on, or `run` once at `at`. `by` is who wants it, for the audit."""

    act: JobAct | Literal["put"]
    id: str
    at: int
    job: Job | None = None
    due: int | None = None
    by: str = ""


Outward = Post | Part | JobChange | Spawn
"""What a call says and sets going elsewhere, committed with its result."""
