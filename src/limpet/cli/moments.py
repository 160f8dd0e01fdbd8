"""Moments for people: local time, from UTC milliseconds."""

from __future__ import annotations

import time


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


def when(at: int) -> str:
    """`2026-12-01 10:00`, local; `never` for 0."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000)) if at else "never"


def ago(at: int, now: int) -> str:
    """`3 min ago`; `never` for 0."""
    if not at:
        return "never"
    seconds = max(0, now - at) // 1000
    for size, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and size < 86_400):
            return f"{seconds // size} {name} ago"
    return f"{seconds} s ago"
