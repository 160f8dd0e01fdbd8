"""When: what people and models write for a schedule, made one that is sure. Raises `InputError` that says what is
wrong."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from datetime import time as daytime
from zoneinfo import ZoneInfo

from limpet.errors import InputError
from limpet.schedule import slots
from limpet.schedule.zones import instant, local, shown, zone_of
from limpet.types.job import Schedule, ScheduleKind

LEAST_EVERY = 60_000
LONGEST = 366 * 86_400_000
_UNITS = {
    "s": 1_000, "sec": 1_000, "second": 1_000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "w": 604_800_000, "week": 604_800_000,
}  # fmt: skip
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?(?=\s|\d|,|$)")
_CLOCK = re.compile(r"(\d{1,2})(?:[:.h](\d{2}))?\s*(am|pm)?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMED = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
HOW_AT = "Write 2026-12-01 10:00, 2026-12-01, `in 20 minutes`, `tomorrow 7:30`, `friday 18:00` or `7:30`."
HOW_EVERY = "Write 30m, 2h, 1d, `90 minutes`."
HOW_CRON = "Five fields: minute hour day-of-month month day-of-week, such as `30 8 * * 1-5`."
FIELDS = ("minute", "hour", "day of the month", "month", "day of week")


def schedule(kind: ScheduleKind, text: str, *, zone: str, now: int) -> Schedule:
    """What `text` means for a kind of schedule in the zone of that name, said at `now` (UTC ms)."""
    place, said = zone_of(zone), " ".join(text.split())
    if not said:
        raise InputError("It is not said when.")
    match kind:
        case "at":
            at = moment(said, zone=place, now=now)
            if at <= now:
                raise InputError(f"{shown(at, zone)} is over.", hint=HOW_AT)
            return Schedule("at", said, zone, at=at)
        case "every":
            return Schedule("every", said, zone, every=_every(said), anchor=now)
        case "cron":
            made = Schedule("cron", said, zone, expression=_NAMED.get(said.lower(), said))
            _check_cron(made, now)
            return made


def _every(said: str) -> int:
    found = span(said.lower().removeprefix("every "))
    if not found:
        raise InputError(f"{said!r} is no span of time.", hint=HOW_EVERY)
    if not LEAST_EVERY <= found <= LONGEST:
        raise InputError("A job runs once a minute at the most, and once a year at the least.", hint=HOW_EVERY)
    return found


def span(text: str) -> int:
    """Milliseconds of `20 minutes`, `1h 30m`; 0 for what is none."""
    text = re.sub(r"\band\b|,", " ", text.strip().lower())
    text = re.sub(r"^an?\s", "1 ", text)
    if _SPAN.sub("", text).strip():
        return 0
    total = 0.0
    for number, unit in _SPAN.findall(text):
        if unit not in _UNITS:
            return 0
        total += float(number) * _UNITS[unit]
    return round(total) if total <= 100 * LONGEST else 0


def moment(said: str, *, zone: ZoneInfo, now: int) -> int:
    """The instant (UTC ms) that a text means."""
    text = said.strip()
    low = text.lower()
    if low.startswith("in ") and (ahead := span(low[3:])):
        return now + ahead
    here = local(now, zone)
    day, _, rest = low.removeprefix("at ").partition(" ")
    if (named := _named_day(day, here.date())) is not None:
        return _on(named, rest.removeprefix("at "), said, zone=zone)
    if clock := _clock(low.removeprefix("at ")):
        at = instant(datetime.combine(here.date(), clock), zone)
        return at if at > now else instant(datetime.combine(here.date() + timedelta(days=1), clock), zone)
    return _written(text, said, zone=zone)


def _named_day(word: str, today: date) -> date | None:
    if word in ("today", "tonight"):
        return today
    if word == "tomorrow":
        return today + timedelta(days=1)
    known = [number for number, name in enumerate(_DAYS) if len(word) > 2 and name.startswith(word)]
    return today + timedelta(days=(known[0] - today.weekday()) % 7 or 7) if known else None


def _on(day: date, rest: str, said: str, *, zone: ZoneInfo) -> int:
    clock = _clock(rest)
    if clock is None:
        raise InputError(f"{said!r} does not say at what time.", hint=HOW_AT)
    return instant(datetime.combine(day, clock), zone)


def _clock(text: str) -> daytime | None:
    """A time of day; a bare number only with am or pm."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None or (found[2] is None and found[3] is None):
        return None
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[3] == "pm" else 0)
    return daytime(hour, minute) if hour < 24 and minute < 60 else None


def _written(text: str, said: str, *, zone: ZoneInfo) -> int:
    """ISO 8601: with an offset that instant, without one local time; a date alone is its midnight."""
    try:
        found = datetime.fromisoformat(re.sub(r"(?<=\d)z$", "+00:00", text, flags=re.IGNORECASE))
    except ValueError:
        raise InputError(f"{said!r} is no moment.", hint=HOW_AT) from None
    if found.tzinfo is not None:
        return round(found.timestamp() * 1000)
    return instant(found, zone)


def _check_cron(made: Schedule, now: int) -> None:
    from cronsim import CronSimError

    fields = made.expression.split()
    if len(fields) != len(FIELDS):
        raise InputError(f"{made.said!r} has {len(fields)} fields, not five.", hint=HOW_CRON)
    try:
        found = slots.after(made, now)
    except CronSimError as error:
        wrong = str(error).removeprefix("Bad ").replace("-", " ").replace("day of month", "day of the month")
        given = fields[FIELDS.index(wrong)] if wrong in FIELDS else ""
        raise InputError(f"{made.said!r} is no schedule: the {wrong} {given!r} cannot be.", hint=HOW_CRON) from None
    if found is None:
        raise InputError(f"{made.said!r} is never due.", hint=HOW_CRON)
