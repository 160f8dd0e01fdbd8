"""Time zones and local times. What local clocks do twice a year is settled here, for all kinds of schedules.

A local time that does not exist (clocks go forward) is the first valid instant after the gap; one that exists twice
(clocks go back) is the first of the two.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from limpet.errors import InputError

LINK = "/etc/localtime"
MINUTE = 60_000


def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises `InputError` that names near ones."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    from difflib import get_close_matches  # only for mistakes
    from zoneinfo import available_timezones

    near = get_close_matches(name, sorted(available_timezones()), n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Names are such as Europe/Lisbon."
    raise InputError(f"There is no time zone {name!r}.", hint=hint)


def system_zone() -> str:
    """The IANA name of this machine's zone; UTC where it cannot be told."""
    named = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath(LINK).partition("/zoneinfo/")[2]
    for name in (named, linked, *time.tzname[:1]):
        if name:
            try:
                return ZoneInfo(name.removeprefix("posix/").removeprefix("Etc/")).key
            except (KeyError, ValueError, OSError):
                continue
    return "UTC"


def users_zone(name: str) -> str:
    """The zone of the setting `user.timezone`: empty = the system's, one that is not known counts as UTC."""
    try:
        return ZoneInfo(name).key if name else system_zone()
    except (KeyError, ValueError, OSError):
        return "UTC"


def local(at: int, zone: ZoneInfo) -> datetime:
    """The local time of an instant (UTC ms)."""
    return datetime.fromtimestamp(at / 1000, zone)


def instant(naive: datetime, zone: ZoneInfo) -> int:
    """The instant (UTC ms) of a local time."""
    first = naive.replace(tzinfo=zone, fold=0)
    at = round(first.timestamp() * 1000)
    if local(at, zone).replace(tzinfo=None) == naive:
        return at
    return _end_of_gap(round(naive.replace(tzinfo=zone, fold=1).timestamp() * 1000), at, zone)


def _end_of_gap(before: int, after: int, zone: ZoneInfo) -> int:
    """The instant between the two at which the clocks go forward."""
    early = local(before, zone).utcoffset()
    while after - before > 1000:
        middle = (before + after) // 2000 * 1000
        if local(middle, zone).utcoffset() == early:
            before = middle
        else:
            after = middle
    return after // 1000 * 1000


def shown(at: int, zone: str) -> str:
    """`Mon 2026-12-01 10:00 Europe/Lisbon`, for people."""
    moment = datetime.fromtimestamp(at / 1000, zone_of(zone) if zone != "UTC" else UTC)
    return f"{moment:%a %Y-%m-%d %H:%M} {zone}"
