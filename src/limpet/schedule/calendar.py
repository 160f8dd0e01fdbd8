"""A calendar of what comes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from msgspec import Struct

from limpet.schedule import slots
from limpet.schedule.zones import local, zone_of
from limpet.types.job import JobRow

DAY = 86_400_000
MOST = 1_000
"""Slots of one job that a calendar looks at."""


class Due(Struct, frozen=True):
    """A day of a job: the first slot (UTC ms), and how many there are."""

    at: int
    name: str
    times: int = 1


def upcoming(rows: Iterable[JobRow], *, zone: str, now: int, days: int) -> list[Due]:
    """What is due in the next days, by time; of each job one for each day."""
    found: list[Due] = []
    for row in rows:
        coming = takewhile(lambda at: at <= now + days * DAY, slots.coming(row.job.schedule, now))
        by_day: dict[str, list[int]] = {}
        for _, at in zip(range(MOST), coming, strict=False):
            by_day.setdefault(f"{local(at, zone_of(zone)):%Y-%m-%d}", []).append(at)
        found += [Due(times[0], row.job.name, len(times)) for times in by_day.values()]
    return sorted(found, key=lambda due: (due.at, due.name))
