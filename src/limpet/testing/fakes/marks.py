"""Cache marks in a request, and the rules of Anthropic about them."""

from __future__ import annotations

import msgspec

from limpet.testing.fakes.shape import fields, need


def marks_in(value: object) -> list[object]:
    """What stands at `cache_control` in a part of the body, in its order."""
    if isinstance(value, dict):
        found = msgspec.convert(value, dict[str, object])
        if "cache_control" in found:
            need(found.get("type") not in ("thinking", "redacted_thinking"), "thinking: cache_control is not permitted")
        own = [found["cache_control"]] if "cache_control" in found else []
        return [*(mark for item in found.values() for mark in marks_in(item)), *own]
    if isinstance(value, list):
        return [mark for item in msgspec.convert(value, list[object]) for mark in marks_in(item)]
    return []


def check_marks(marks: list[object]) -> None:
    """At most four, and those of an hour before those of five minutes."""
    need(len(marks) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    lives = [fields(mark, "cache_control") for mark in marks]
    for mark in lives:
        need(mark.get("type") == "ephemeral", "cache_control.type: Input should be 'ephemeral'")
        need(mark.get("ttl", "5m") in ("5m", "1h"), "cache_control.ttl: Input should be '5m' or '1h'")
    hours = [mark.get("ttl") == "1h" for mark in lives]
    need(
        hours == sorted(hours, reverse=True),
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    )
