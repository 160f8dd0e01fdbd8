"""The outlook: what waits, runs and did not arrive, counted."""

from __future__ import annotations

import time

from msgspec import Struct, convert

from limpet.store.outbox import TERMINAL
from limpet.store.sql import Connection

WEEK = 7 * 86_400_000


class Outlook(Struct, frozen=True):
    """Rows that wait, with the time of the oldest (UTC ms); `dead` did not arrive in the last week."""

    inbox: int = 0
    inbox_oldest: int = 0
    outbox: int = 0
    outbox_oldest: int = 0
    dead: int = 0
    running: int = 0
    waiting: int = 0


def look(connection: Connection) -> Outlook:
    """As it is now; what waits for terminals is left out."""
    since = time.time_ns() // 1_000_000 - WEEK
    row = connection.execute(
        "SELECT (SELECT COUNT(*) FROM inbox WHERE state = 'queued'),"
        " (SELECT ifnull(MIN(received), 0) FROM inbox WHERE state = 'queued'),"
        " (SELECT COUNT(*) FROM outbox WHERE state IN ('queued', 'attempting') AND kind != 'preview'"
        " AND channel != ?1),"
        " (SELECT ifnull(MIN(created), 0) FROM outbox WHERE state IN ('queued', 'attempting') AND kind != 'preview'"
        " AND channel != ?1),"
        " (SELECT COUNT(*) FROM outbox WHERE state IN ('failed', 'expired') AND kind IN ('reply', 'notice', 'report')"
        " AND channel != ?1 AND created > ?2 AND error != 'dropped by the owner'),"
        " (SELECT COUNT(*) FROM turns WHERE state = 'running'),"
        " (SELECT COUNT(*) FROM turns WHERE state = 'waiting')",
        (TERMINAL, since),
    ).fetchone()
    return Outlook(*convert(row, tuple[int, int, int, int, int, int, int]))
