"""Spending: what requests have used, summed up by time and by who used it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, convert

from limpet.store.sql import Connection
from limpet.types.usage import NO_USAGE, Usage

Group = Literal["day", "agent", "model", "channel", "session"]

_GONE = "(SELECT {} FROM removals WHERE removals.session = usage.session LIMIT 1)"
"""SQL of what is known of a deleted session."""
_KEYS: dict[Group, str] = {
    "day": "strftime('%Y-%m-%d', usage.at / 1000, 'unixepoch', ?)",
    "agent": f"COALESCE(sessions.agent, {_GONE.format('agent')}, '?') || substr(?, 1, 0)",
    "model": "usage.provider || '/' || usage.model || substr(?, 1, 0)",
    "channel": "COALESCE((SELECT channel FROM inbox WHERE inbox.turn = usage.turn LIMIT 1), '?') || substr(?, 1, 0)",
    "session": f"COALESCE(sessions.key, {_GONE.format('key')}, usage.session) || substr(?, 1, 0)",
}
"""SQL of each group's name. All take the offset from UTC, which only the day needs."""


class Spent(Struct, frozen=True):
    """What one group has used.

    `unpriced` counts requests whose cost is not known, `lost` those that were killed or still run,
    `estimated` those whose tokens were estimated because nobody counted them: cut off, stopped or killed.
    """

    name: str
    requests: int
    usage: Usage
    unpriced: int
    lost: int
    estimated: int = 0

    @property
    def hit_rate(self) -> float:
        """Share of the input that came from a cache, 0 to 1."""
        read = self.usage.input + self.usage.cache_read + self.usage.cache_write
        return self.usage.cache_read / read if read else 0.0


class _Row(Struct, array_like=True):
    name: str
    requests: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    cost: int | None
    unpriced: int
    lost: int
    estimated: int


def total(connection: Connection, *, since: int) -> int:
    """Micro-dollars of everything used since `since` (UTC ms), as far as prices are known."""
    row = connection.execute("SELECT ifnull(SUM(cost), 0) FROM usage WHERE at >= ?", (since,)).fetchone()
    return convert(row, tuple[int])[0]


def by_beats(connection: Connection, *, since: int) -> tuple[int, int]:
    """How many heartbeats have asked a model since `since` (UTC ms), and what they cost in micro-dollars."""
    row = connection.execute(
        "SELECT COUNT(DISTINCT usage.turn), ifnull(SUM(cost), 0) FROM usage"
        " JOIN sessions ON sessions.id = usage.session WHERE usage.at >= ? AND sessions.key LIKE 'cron:heartbeat-%'",
        (since,),
    ).fetchone()
    return convert(row, tuple[int, int])


def spent(connection: Connection, group: Group, *, since: int, offset: int = 0) -> list[Spent]:
    """Everything used since `since` (UTC ms), a row per `group`. `offset`: seconds that local time is ahead of UTC."""
    rows = connection.execute(
        f"SELECT {_KEYS[group]} AS name, COUNT(*), SUM(input), SUM(output), SUM(cache_read), SUM(cache_write),"
        " SUM(reasoning), SUM(cost), SUM(usage.state = 'done' AND cost IS NULL),"
        " SUM(usage.state IN ('open', 'orphaned')), SUM(usage.estimated)"
        " FROM usage LEFT JOIN sessions ON sessions.id = usage.session"
        " WHERE usage.at >= ? GROUP BY name ORDER BY name",
        (f"{offset:+d} seconds", since),
    )
    return [
        Spent(
            name=row.name,
            requests=row.requests,
            usage=Usage(
                input=row.input,
                output=row.output,
                cache_read=row.cache_read,
                cache_write=row.cache_write,
                reasoning=row.reasoning,
                cost=row.cost,
            ),
            unpriced=row.unpriced,
            lost=row.lost,
            estimated=row.estimated,
        )
        for row in convert(rows.fetchall(), list[_Row])
    ]


def together(rows: Sequence[Spent]) -> Spent:
    """All rows as one."""
    used = Spent(name="all", requests=0, usage=NO_USAGE, unpriced=0, lost=0)
    for row in rows:
        used = Spent(
            name="all",
            requests=used.requests + row.requests,
            usage=used.usage + row.usage,
            unpriced=used.unpriced + row.unpriced,
            lost=used.lost + row.lost,
            estimated=used.estimated + row.estimated,
        )
    return used
