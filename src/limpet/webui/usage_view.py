"""What was used: money and tokens by day, model, channel, agent or conversation, and how much came from the cache."""

from __future__ import annotations

import time

from nicegui import ui

from limpet.store.spending import Group, Spent, spent, together
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import sheet
from limpet.webui.transcript import dollars

BARS = 40
"""Rows that a chart shows."""
ROWS = 200
COLOURS = ("#0e8a80", "#6d8fb5", "#c28a00")
GREY = "#7a858f"
"""To be read on light and dark."""


def show(desk: Desk) -> None:
    """A chart and a table, for a while and a way of grouping that can be chosen."""

    @ui.refreshable
    def body() -> None:
        group: Group = by.value if by.value in texts.USAGE_GROUPS else "day"
        rows = found(desk, group, days=int(last.value or 30))
        if not rows:
            ui.label(texts.NOTHING).classes("lp-dim")
            return
        ui.echart(chart(rows, is_day=group == "day"), renderer="svg").classes("lp-panel").style("height: 22rem")
        _table(rows)

    with sheet(texts.NAV["/usage"][0]):
        with ui.element("div").classes("lp-row"):
            by = ui.select(texts.USAGE_GROUPS, value="day", label=texts.USAGE_BY).props("outlined dense")
            last = ui.select(texts.USAGE_DAYS, value=30, label=texts.USAGE_LAST).props("outlined dense")
        body()  # pyright: ignore
    by.on_value_change(body.refresh)
    last.on_value_change(body.refresh)


def found(desk: Desk, group: Group, *, days: int) -> list[Spent]:
    """What was used in the last `days`, today included."""
    local = time.localtime(desk.clock.now() / 1000)
    midnight = int(time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1)))
    since = (midnight - (days - 1) * 86_400) * 1000
    return desk.store.read(lambda connection: spent(connection, group, since=since, offset=local.tm_gmtoff))


def chart(rows: list[Spent], *, is_day: bool) -> dict[str, object]:
    """What ECharts draws: money as bars, the share that came from the cache as a line."""
    shown = rows[-BARS:] if is_day else sorted(rows, key=_weight, reverse=True)[:BARS]
    return {
        "aria": {"enabled": True},
        "animation": False,
        "color": COLOURS,
        "textStyle": {"color": GREY},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "legend": {"data": [texts.USAGE_MONEY, texts.USAGE_TOKENS, texts.USAGE_HITS], "textStyle": {"color": GREY}},
        "grid": {"left": 60, "right": 60, "bottom": 70},
        "xAxis": {"type": "category", "data": [row.name for row in shown], "axisLabel": {"rotate": 30}},
        "yAxis": [
            {"type": "value", "name": "$"},
            {"type": "value", "name": texts.USAGE_TOKENS, "show": False},
            {"type": "value", "name": "%", "max": 100},
        ],
        "series": [
            {"name": texts.USAGE_MONEY, "type": "bar", "data": [(row.usage.cost or 0) / 1e6 for row in shown]},
            {"name": texts.USAGE_TOKENS, "type": "bar", "yAxisIndex": 1, "data": [row.usage.total for row in shown]},
            {
                "name": texts.USAGE_HITS,
                "type": "line",
                "yAxisIndex": 2,
                "data": [round(100 * row.hit_rate, 1) for row in shown],
            },
        ],
    }


def _weight(row: Spent) -> tuple[int, int]:
    return row.usage.cost or 0, row.usage.total


def _table(rows: list[Spent]) -> None:
    """The rows and their sum; of very many those that used most."""
    shown = rows if len(rows) <= ROWS else sorted(rows, key=_weight, reverse=True)[:ROWS]
    wide = ui.element("div").classes("lp-wide lp-panel").props('tabindex="0" role="region"')
    wide.props["aria-label"] = texts.NAV["/usage"][0]
    with wide, ui.element("table").classes("lp-table"):
        with ui.element("thead"), ui.element("tr"):
            for label in texts.USAGE_COLUMNS:
                with ui.element("th"):
                    ui.label(label)
        with ui.element("tbody"):
            for row in (*shown, *([together(rows)] if len(rows) > 1 else [])):
                with ui.element("tr"):
                    for cell in _cells(row):
                        with ui.element("td"):
                            ui.label(cell)
    if len(shown) < len(rows):
        ui.label(texts.USAGE_LEFT_OUT.format(count=len(rows) - len(shown))).classes("lp-dim")


def _cells(row: Spent) -> tuple[str, ...]:
    used = row.usage
    return (
        row.name,
        f"{row.requests:,}",
        f"{used.input + used.cache_read + used.cache_write:,}",
        f"{row.hit_rate:.0%}",
        f"{used.output:,}",
        ("~" if row.estimated else "") + dollars(used.cost),
    )
