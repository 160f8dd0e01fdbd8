"""The desk: makes jobs of what is wished, within what who wishes may do. Raises `InputError` for what cannot be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct, structs

from limpet.assistant.addresses import WEBHOOK
from limpet.errors import InputError
from limpet.schedule import slots, when
from limpet.schedule.zones import shown
from limpet.session import keys
from limpet.store import jobs
from limpet.store.sql import Connection
from limpet.types.envelope import Address, Mandate, Trust
from limpet.types.ids import new_id
from limpet.types.job import Conduct, Delivery, Job, JobAct, JobChange, JobRow, Schedule, ScheduleKind

LONGEST = 8_000
"""Characters of what a job is to do."""
LONGEST_NAME = 60
HEARTBEAT = "heartbeat"
"""The name that is kept for Limpet's own job."""
SHOWN = 3
"""Next runs that are shown when a job is made."""
Where = Literal["isolated", "main", "here"]


class Timing(Struct, frozen=True):
    """When, in words: exactly one of the three; `zone` empty = the user's."""

    at: str = ""
    every: str = ""
    cron: str = ""
    zone: str = ""

    @classmethod
    def of(cls, said: str, zone: str = "") -> Timing:
        """When, in one text: `every 2h`, `30 8 * * 1-5` (also after `cron`), else a moment."""
        said = said.strip()
        word, _, rest = said.partition(" ")
        if word.lower() == "every":
            return cls(every=rest, zone=zone)
        if word.lower() == "cron":
            return cls(cron=rest.strip(" :`"), zone=zone)
        is_cron = said.startswith("@") or (len(said.split()) == 5 and re.match(r"[\d*]", said) is not None)
        return cls(cron=said, zone=zone) if is_cron else cls(at=said, zone=zone)

    def schedule(self, *, zone: str, now: int) -> Schedule:
        said: tuple[tuple[ScheduleKind, str], ...] = (("at", self.at), ("every", self.every), ("cron", self.cron))
        given = [one for one in said if one[1]]
        if len(given) != 1:
            raise InputError("Say when, in exactly one of at, every and cron.", hint=when.HOW_AT)
        kind, text = given[0]
        return when.schedule(kind, text, zone=self.zone or zone, now=now)


class Maker(Struct, frozen=True):
    """Who makes a job, and in which conversation: what it may do is what they may. `zone` is the user's."""

    agent: str
    zone: str
    key: str = ""
    channel: str = "cli"
    sender: str = ""
    trust: Trust = "owner"
    address: Address | None = None

    @property
    def name(self) -> str:
        """For the audit."""
        return f"{self.channel}:{self.sender}".rstrip(":")


class Wish(Struct, frozen=True):
    """What a job is to be. `says`: the text is delivered word for word, and no model is asked.

    `delivery` None: to the chat in which it is made, from a terminal to the owner's newest one.
    """

    text: str
    timing: Timing
    name: str = ""
    says: bool = False
    where: Where = "isolated"
    delivery: Delivery | None = None
    address: Address | None = None
    model: str = ""
    tools: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()
    dollars: float = 0.0
    conduct: Conduct = Conduct()


def make(connection: Connection, wish: Wish, maker: Maker, *, now: int, id: str = "") -> JobChange:
    """The change that makes the job, called `id` where that is given. Others than the owner make jobs of their own
    conversation only."""
    text = wish.text.strip()
    if not text or len(text) > LONGEST:
        raise InputError(f"What is to be done needs 1 to {LONGEST:,} characters.")
    schedule = wish.timing.schedule(zone=maker.zone, now=now)
    name = _name(connection, wish.name, text, agent=maker.agent)
    job = id or new_id("j")
    delivery, address = _target(wish, maker)
    mandate = Mandate(
        job=job,
        name=name,
        channel=maker.channel,
        sender=maker.sender,
        model=wish.model if maker.trust == "owner" else "",
        tools=wish.tools,
        grants=wish.grants if maker.trust == "owner" else (),
        dollars=wish.dollars,
        deliver=delivery != "none",
    )
    made = Job(
        id=job,
        name=name,
        agent=maker.agent,
        schedule=schedule,
        text=text,
        key=_key(wish, maker, job),
        mandate=mandate,
        delivery=delivery,
        address=_of_job(address, name),
        says=wish.says,
        trust=maker.trust,
        conduct=wish.conduct,
    )
    return JobChange("put", job, now, made, slots.after(schedule, now), by=maker.name)


def _key(wish: Wish, maker: Maker, job: str) -> str:
    if maker.trust != "owner" or wish.where == "here":
        return maker.key
    return keys.main(maker.agent) if wish.where == "main" else keys.cron(job)


def _target(wish: Wish, maker: Maker) -> tuple[Delivery, Address | None]:
    here = maker.address if maker.address is not None and maker.address.channel != "cli" else None
    if maker.trust != "owner":
        if wish.address not in (None, here):
            raise InputError("A job of yours can only answer here.")
        return ("chat", here) if here is not None else ("none", None)
    if wish.address is not None:
        return "chat", wish.address
    if wish.delivery == "none" or wish.delivery == "last" or here is None:
        return wish.delivery or "last", None
    return "chat", here


def _of_job(address: Address | None, name: str) -> Address | None:
    """Where a job answers; a webhook is told which job it is."""
    return structs.replace(address, thread=name) if address is not None and address.channel == WEBHOOK else address


def _name(connection: Connection, wanted: str, text: str, *, agent: str) -> str:
    """The name that was asked for, which must be free; else the first words of what is to be done."""
    if wanted:
        name = " ".join(wanted.split())
        if len(name) > LONGEST_NAME:
            raise InputError(f"A name has at most {LONGEST_NAME} characters.")
        if name.casefold() == HEARTBEAT:
            raise InputError(f"The name {name!r} is kept for Limpet's own heartbeat.", hint="Choose another one.")
        if jobs.named(connection, name, agent=agent):
            raise InputError(f"There is a job {name!r} already.")
        return name
    words = re.findall(r"[^\W_]+", text.lower())
    return free_name(connection, "-".join(words[:4])[:30] or "job", agent=agent)


def free_name(connection: Connection, wanted: str, *, agent: str) -> str:
    """`wanted`, or with the first number that makes it one that no job has."""
    number, name = 1, wanted
    while name == HEARTBEAT or jobs.named(connection, name, agent=agent):
        number += 1
        name = f"{wanted}-{number}"
    return name


def edited(row: JobRow, wish: Wish, timing: Timing | None, *, zone: str, now: int) -> JobChange:
    """The change that makes of a job what `wish` says; without `timing` its slots stay as they are."""
    if row.job.mandate.purpose == "heartbeat":
        raise InputError("The heartbeat is as the settings say.", hint="`limpet config set heartbeat.minutes 60`.")
    schedule = timing.schedule(zone=timing.zone or row.job.schedule.zone or zone, now=now) if timing else None
    job = row.job
    delivery = wish.delivery or ("chat" if wish.address is not None else job.delivery)
    made = structs.replace(
        job,
        text=wish.text or job.text,
        schedule=schedule or job.schedule,
        delivery=delivery,
        address=_of_job(wish.address, job.name) or job.address,
        conduct=wish.conduct,
        mandate=structs.replace(
            job.mandate,
            model=wish.model or job.mandate.model,
            tools=wish.tools or job.mandate.tools,
            grants=wish.grants or job.mandate.grants,
            dollars=wish.dollars or job.mandate.dollars,
            deliver=delivery != "none",
        ),
    )
    return JobChange("put", job.id, now, made, slots.after(made.schedule, now))


def change(row: JobRow, act: JobAct, *, now: int) -> JobChange:
    """The change that does `act` to a job."""
    if act == "remove" and row.job.mandate.purpose == "heartbeat":
        raise InputError("The heartbeat cannot be removed.", hint="Pause it, or set heartbeat.minutes to 0.")
    if act != "resume":
        return JobChange(act, row.job.id, now)
    due = slots.after(row.job.schedule, now)
    if due is None:
        raise InputError(f"{row.job.name} was for {shown(row.job.schedule.at, row.job.schedule.zone)}, which is over.")
    return JobChange("resume", row.job.id, now, due=due)


def the_one(connection: Connection, name: str, *, agent: str = "") -> JobRow:
    """The job of that name or id."""
    found = jobs.named(connection, name, agent=agent)
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{name!r} is several jobs.", hint=f"Their ids: {', '.join(one.job.id for one in found)}.")
    there = ", ".join(row.job.name for row in jobs.listed(connection, agent=agent)[:20])
    raise InputError(f"There is no job {name!r}.", hint=f"There are: {there}." if there else "There are none.")


def confirmation(job: Job, *, now: int) -> str:
    """What a new job will do and when next, in its local time."""
    coming = [shown(at, job.schedule.zone) for at in islice(slots.coming(job.schedule, now), SHOWN)]
    what = "says" if job.says else "does"
    return f"The job {job.name} {what}: {summary(job.text)}\nNext: {', '.join(coming)}. {target(job)}"


def target(job: Job) -> str:
    """Where its answers go, in a sentence."""
    match job.delivery:
        case "none":
            return "Its answers go nowhere."
        case "last":
            return "Its answers go to your newest chat."
        case "chat":
            where = job.address
            return f"Its answers go to {where.channel} {where.chat}." if where else "Its answers go nowhere."


def summary(text: str, length: int = 80) -> str:
    plain = " ".join(text.split())
    return f"{plain[:length]}…" if len(plain) > length else plain


def line(row: JobRow) -> str:
    """One job: state, when next, what."""
    job = row.job
    due = f"next {shown(row.due, job.schedule.zone)}" if row.due is not None else row.state
    why = f" ({row.reason})" if row.reason else ""
    failed = f", {row.failures} failures in a row" if row.failures else ""
    return f"{due}{why}{failed} · {job.schedule.kind} {job.schedule.said} · {summary(job.text)}"


def listing(rows: Sequence[JobRow]) -> str:
    return "\n".join(f"- {row.job.name}: {line(row)}" for row in rows) or "There are no jobs."
