"""When a conversation begins anew by itself: after a pause, or once a day at an hour (FEATURES C2)."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

MINUTE = 60_000


class Reset(Struct, frozen=True):
    """`idle` is minutes of silence, 0 = never; `daily` the local hour of the day (0-23), None = never."""

    idle: int = 0
    daily: int | None = None


def due(rule: Reset, last: int, now: int, *, zone: tzinfo) -> str:
    """Why a session that was last used at `last` begins anew at `now` (UTC ms): `idle`, `daily`, or empty."""
    if rule.idle and now - last >= rule.idle * MINUTE:
        return "idle"
    if rule.daily is not None and last < boundary(now, rule.daily, zone=zone) <= now:
        return "daily"
    return ""


def boundary(now: int, hour: int, *, zone: tzinfo) -> int:
    """The newest moment (UTC ms) not after `now` at which it was `hour` o'clock in `zone`.

    On a day on which the clock jumps over that hour, it is the moment of the jump or an hour beside it; on one with
    two of them the first: once a day in any case.
    """
    local = datetime.fromtimestamp(now / 1000, zone)
    for back in (0, 1, 2):  # a zone can leave out a whole day
        day = local.date() - timedelta(days=back)
        moment = round(datetime(day.year, day.month, day.day, hour, tzinfo=zone).timestamp() * 1000)
        if moment <= now:
            return moment
    raise AssertionError("yesterday's hour is always over")
