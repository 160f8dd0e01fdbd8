"""The heartbeat: a job of Limpet's own that looks after HEARTBEAT.md, on the grid of the wall clock.

It costs nothing while there is nothing to look after: without an open task no model is asked. What it says is one of
its answers, like those of any job; the same alert is not told twice within a day.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta

from limpet.config.schema import HeartbeatSettings
from limpet.schedule import slots
from limpet.schedule.zones import instant, local, zone_of
from limpet.session import keys
from limpet.store import jobs
from limpet.store.sql import Connection
from limpet.types.envelope import Mandate
from limpet.types.job import Conduct, Job, JobChange, JobRow, Schedule

FILE = "HEARTBEAT.md"
NAME = "heartbeat"
MOST = 64_000
"""Bytes of the file that are looked at."""
TASK = (
    "Look after the open tasks of HEARTBEAT.md, which reads now:\n\n{tasks}\n\nAnswer with what is worth telling your"
    " owner now, and nothing else; if that is nothing, answer HEARTBEAT_OK."
)
_TASK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[(?P<mark>.)\]\s*)?(?P<text>\S.*)$")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def id_of(agent: str) -> str:
    """The id of the heartbeat of an agent."""
    return f"heartbeat-{agent}"


def job(settings: HeartbeatSettings, *, agent: str, zone: str) -> Job:
    """The heartbeat as the settings want it. Its grid begins at a midnight of the wall clock."""
    name = id_of(agent)
    anchor = instant(datetime(2024, 1, 1), zone_of(zone))
    every = max(1, settings.minutes) * 60_000
    return Job(
        id=name,
        name=NAME,
        agent=agent,
        schedule=Schedule("every", f"{settings.minutes} min", zone, every=every, anchor=anchor),
        text="",
        key=keys.cron(name),
        mandate=Mandate(name, NAME, purpose="heartbeat", deliver=settings.deliver != "none"),
        delivery=settings.deliver,
        conduct=Conduct(catch_up="skip", grace=every, retries=0),
    )


def sync(connection: Connection, wanted: Job, *, on: bool, now: int) -> None:
    """Have the heartbeat be as it is wanted; one that is already keeps its place on the grid."""
    row = jobs.find(connection, wanted.id)
    if not on:
        if row is not None:
            jobs.apply(connection, JobChange("remove", wanted.id, now))
    elif row is None or row.job != wanted:
        jobs.apply(connection, JobChange("put", wanted.id, now, wanted, slots.after(wanted.schedule, now)))


def tasks(text: str) -> list[str]:
    """The open tasks in the text of HEARTBEAT.md: list items that are not ticked off."""
    found: list[str] = []
    for line in _COMMENT.sub("", text).splitlines():
        item = _TASK.match(line)
        if item is not None and (item["mark"] or " ") == " ":
            found.append(item["text"].strip())
    return found


def read(workspace: str) -> list[str]:
    """The open tasks of a workspace; none where the file is missing or cannot be read."""
    try:
        with open(os.path.join(workspace, FILE), encoding="utf-8", errors="replace") as file:
            return tasks(file.read(MOST))
    except OSError:
        return []


def text_of(workspace: Callable[[str], str]) -> Callable[[Job], str]:
    """What a beat says, for the scheduler; `workspace` gives that of an agent."""

    def text(job: Job) -> str:
        if job.mandate.purpose != "heartbeat":
            return ""
        return TASK.format(tasks="\n".join(f"- [ ] {one}" for one in read(workspace(job.agent))))

    return text


def is_active(active: str, at: int, *, zone: str) -> bool:
    """Whether the local time of `at` lies in `08:00-23:00`: its begin belongs to it, its end does not.

    An end before the begin is on the next day; empty: always.
    """
    if not active:
        return True
    begin, end = (_clock(one) for one in active.split("-"))
    now = local(at, zone_of(zone))
    passed = timedelta(hours=now.hour, minutes=now.minute)
    return begin <= passed < end if begin <= end else passed >= begin or passed < end


def _clock(text: str) -> timedelta:
    hour, _, minute = text.partition(":")
    return timedelta(hours=int(hour), minutes=int(minute))


def gate(settings: Callable[[], HeartbeatSettings], workspace: Callable[[str], str]) -> Callable[[JobRow], str]:
    """Why a beat is left out, for the scheduler; `workspace` gives that of an agent."""

    def refusal(row: JobRow) -> str:
        if row.job.mandate.purpose != "heartbeat":
            return ""
        if row.due is not None and not is_active(settings().active, row.due, zone=row.job.schedule.zone):
            return "outside the active hours"
        return "" if read(workspace(row.job.agent)) else "HEARTBEAT.md has no open task"

    return refusal
