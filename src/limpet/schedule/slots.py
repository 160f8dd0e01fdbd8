"""Slots: the instants at which a schedule is due. Pure functions of the schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from limpet.schedule.zones import zone_of
from limpet.types.job import Schedule

MOST = 10_000
"""Slots that are counted one by one; what lies beyond is in the ledger as one row all the same."""


def after(schedule: Schedule, moment: int) -> int | None:
    """The first slot after a moment (UTC ms); None when there is none."""
    return next(coming(schedule, moment), None)


def coming(schedule: Schedule, moment: int) -> Iterator[int]:
    """The slots after a moment, in order; without end for all kinds but `at`."""
    match schedule.kind:
        case "at":
            if schedule.at > moment:
                yield schedule.at
        case "every":
            number = max(0, (moment - schedule.anchor) // schedule.every + 1)
            while True:
                yield schedule.anchor + number * schedule.every
                number += 1
        case "cron":
            yield from _cron(schedule, moment)


def _cron(schedule: Schedule, moment: int) -> Iterator[int]:
    from cronsim import CronSim  # where there are such jobs

    zone = UTC if schedule.zone == "UTC" else zone_of(schedule.zone)
    for found in CronSim(schedule.expression, datetime.fromtimestamp(moment // 1000, zone)):
        at = round(found.timestamp()) * 1000
        if at > moment:
            yield at


def upto(schedule: Schedule, moment: int, now: int) -> list[int]:
    """The slots after a moment and not after `now`: the newest `MOST` of them."""
    if schedule.kind == "every" and (now - moment) // schedule.every > MOST:
        moment = now - MOST * schedule.every
    found: list[int] = []
    for at in islice(coming(schedule, moment), MOST):
        if at > now:
            return found
        found.append(at)
    if schedule.kind == "cron" and found:
        return _newest(schedule, now)
    return found


def _newest(schedule: Schedule, now: int) -> list[int]:
    """The newest slots, found backwards from `now`."""
    from cronsim import CronSim

    zone = UTC if schedule.zone == "UTC" else zone_of(schedule.zone)
    behind = CronSim(schedule.expression, datetime.fromtimestamp(now // 1000 + 1, zone), reverse=True)
    found = [round(one.timestamp()) * 1000 for one in islice(behind, MOST)]
    return [at for at in reversed(found) if at <= now]
