"""`limpet usage`: tokens and money, by time and by who used them."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Sequence

import click
import msgspec

from limpet.cli.group import Invocation
from limpet.cli.sessions_command import reading
from limpet.cli.terminal import say, width
from limpet.store.spending import Group, Spent, spent, together

DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
COLUMNS = ("requests", "input", "cached", "hit rate", "output", "cost")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--last", type=click.Choice(list(DAYS)), default="month", show_default=True, help="How far back.")
@click.option(
    "--by", type=click.Choice(["day", "agent", "model", "channel", "session"]), default="day", show_default=True
)
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json", "chart"]), default="table", show_default=True
)
@click.pass_obj
def usage(invocation: Invocation, *, last: str, by: Group, form: str) -> None:
    """What was used: requests, tokens, cache hits and money. Requests that were killed are counted too."""
    local = time.localtime()
    midnight = int(time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1)))
    since = (midnight - (DAYS[last] - 1) * 86_400) * 1000
    with reading(invocation) as connection:
        rows = spent(connection, by, since=since, offset=local.tm_gmtoff) if connection else []
    if form == "json":
        say(msgspec.json.encode([_plain(row) for row in rows]).decode())
    elif form == "csv":
        sys.stdout.write(as_csv(rows))
    elif not rows:
        say("Nothing was used.")
    else:
        say(chart(rows) if form == "chart" else table(rows))


def table(rows: Sequence[Spent]) -> str:
    """The rows as a table, with a sum and remarks below it."""
    cells = [["", *COLUMNS], *([row.name, *_cells(row)] for row in rows)]
    if len(rows) > 1:
        cells.append(["all", *_cells(together(rows))])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = [
        "  ".join(
            [line[0].ljust(widths[0]), *(text.rjust(size) for text, size in zip(line[1:], widths[1:], strict=True))]
        )
        for line in cells
    ]
    return "\n".join([*lines, *remarks(together(rows))])


def remarks(row: Spent) -> list[str]:
    found: list[str] = []
    if row.unpriced:
        found.append(f"{row.unpriced} requests went to models whose price is not known; they are not in the cost.")
    if row.lost:
        found.append(f"{row.lost} requests were killed or still run; what they used is not known exactly.")
    if row.estimated:
        found.append(f"{row.estimated} requests were cut off or killed: their part is estimated (~).")
    return found


def chart(rows: Sequence[Spent]) -> str:
    """A bar for each row: its cost, or its tokens where no cost is known."""
    money = any(row.usage.cost for row in rows)
    values = [(row.usage.cost or 0) if money else row.usage.total for row in rows]
    labels = [_money(row) if money else f"{row.usage.total:,}" for row in rows]
    names, ends = max(len(row.name) for row in rows), max(map(len, labels))
    room = max(width() - names - ends - 3, 4)
    most = max(values) or 1
    return "\n".join(
        f"{row.name:<{names}} {'#' * round(room * value / most):<{room}} {label:>{ends}}"
        for row, value, label in zip(rows, values, labels, strict=True)
    )


def as_csv(rows: Sequence[Spent]) -> str:
    """The rows as CSV with a head line; money in dollars, empty where it is not known."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(_plain(together([]))), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_plain(row) for row in rows)
    return out.getvalue()


def _cells(row: Spent) -> list[str]:
    read = row.usage.input + row.usage.cache_read + row.usage.cache_write
    return [
        f"{row.requests:,}",
        f"{read:,}",
        f"{row.usage.cache_read:,}",
        f"{row.hit_rate:.0%}",
        f"{row.usage.output:,}",
        _money(row),
    ]


def _money(row: Spent) -> str:
    about = "~" if row.estimated else ""
    return "?" if row.usage.cost is None else f"{about}${row.usage.cost / 1e6:.4f}"


def _plain(row: Spent) -> dict[str, str | int | float | None]:
    used = row.usage
    return {
        "name": row.name,
        "requests": row.requests,
        "input": used.input,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "output": used.output,
        "reasoning": used.reasoning,
        "dollars": None if used.cost is None else used.cost / 1e6,
        "cache_hit_rate": round(row.hit_rate, 4),
        "unpriced": row.unpriced,
        "lost": row.lost,
        "estimated": row.estimated,
    }
