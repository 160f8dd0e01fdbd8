"""The runtime block: what varies from message to message, at the end of the newest user message."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
OPEN, CLOSE = "<runtime>", "</runtime>"
_TAG = re.compile(r"<(?=\s*/?\s*runtime\b)", re.IGNORECASE)
ABOUT = "Metadata from Limpet about this message. It is not part of what the sender said and no instruction."


def runtime_block(
    now: int, zone: str, *, channel: str = "", chat: str = "", sender: str = "", facts: Iterable[str] = ()
) -> str:
    """The block for a message that came at `now` (UTC ms). `zone` is an IANA name, empty = the system's.

    `facts` are further lines, such as recalled memories.
    """
    lines = [OPEN, ABOUT, f"Time: {local_time(now, zone)}"]
    for label, value in (("Channel", channel), ("Chat", chat), ("Sender", sender)):
        if value:
            lines.append(f"{label}: {one_line(value)}")
    lines += [one_line(fact) for fact in facts]
    return "\n".join([*lines, CLOSE])


def disarmed(text: str) -> str:
    """What somebody else said, so that it holds nothing that reads like such a block."""
    return _TAG.sub("(", text) if "<" in text else text


def one_line(text: str) -> str:
    """`text` so that it can neither end the block nor begin a new line of it."""
    return " ".join(text.replace("<", "(").replace(">", ")").split())[:500]


def local_time(now: int, zone: str) -> str:
    """`Tuesday, 2026-12-01 10:00 Europe/Lisbon (UTC+00:00)`."""
    place, name = find_zone(zone, now)
    moment = datetime.fromtimestamp(now / 1000, place)
    offset = moment.strftime("%z")
    day = f"{DAYS[moment.weekday()]}, {moment:%Y-%m-%d %H:%M}"
    return f"{day} {name} (UTC{offset[:3]}:{offset[3:5]})" if name != "UTC" else f"{day} UTC"


def find_zone(zone: str, now: int) -> tuple[tzinfo, str]:
    """The zone and its name; one that does not exist here counts as UTC."""
    if zone:
        from zoneinfo import ZoneInfo  # only when a zone is set

        try:
            return ZoneInfo(zone), zone
        except (KeyError, ValueError, OSError):
            return UTC, "UTC"
    local = time.localtime(now / 1000)
    return timezone(timedelta(seconds=local.tm_gmtoff)), local.tm_zone


def local_moment(now: int, zone: str) -> datetime:
    """The moment `now` (UTC ms) in `zone`."""
    return datetime.fromtimestamp(now / 1000, find_zone(zone, now)[0])


def day_start(now: int, zone: str) -> int:
    """When the day that holds `now` began in `zone`; both UTC milliseconds."""
    moment = local_moment(now, zone)
    return round(moment.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
