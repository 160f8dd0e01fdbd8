"""`limpet memory search`, `index` and `reindex`: the search index of an agent's memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import click
import msgspec

from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import hand_over, pairs, say
from limpet.cli.view import TerminalView
from limpet.errors import InputError
from limpet.memory.library import Found, Library
from limpet.memory.recall import excerpt, label
from limpet.memory.search import MIN_SCORE, Result, Wanted
from limpet.memory.shelf import Status

SHOWN = 400
"""Characters of a result."""
_STATES = {
    "ready": "ready: a passage was found by its own words",
    "empty": "empty: nothing is remembered yet",
    "failed": "failed: a passage was not found by its own words; make it anew with `limpet memory reindex`",
}


@click.command("search")
@click.argument("query", type=WORDS, nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=6, show_default=True, help="How many, best first.")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=MIN_SCORE,
    show_default=True,
    help="Share of the query that a result has to hold.",
)
@click.option("--why", is_flag=True, help="Also what each result was found by.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def search_command(
    invocation: Invocation, *, query: tuple[str, ...], limit: int, min_score: float, why: bool, as_json: bool
) -> None:
    """What notes and earlier conversations say about QUERY."""
    words = " ".join(query)
    found = asyncio.run(_search(invocation, words, Wanted(0 if not words.strip() else limit, min_score)))
    for text in (*found.notices, *((f"By words alone: {found.degraded}.",) if found.degraded else ())):
        say(f"warning: {text}", error=True)
    if as_json:
        for result in found.results:
            hand_over(msgspec.json.encode(_as_json(result)).decode() + "\n")
    elif found.results:
        say("\n\n".join(_as_text(result, words, why=why) for result in found.results))
    else:
        say("Nothing was found.")


@click.command("index")
@click.pass_obj
def index_command(invocation: Invocation) -> None:
    """The state of the search index: what is in it, and whether it works."""
    say(pairs(_rows(asyncio.run(_status(invocation)))))


@click.command("reindex")
@click.pass_obj
def reindex_command(invocation: Invocation) -> int:
    """Make the search index anew, beside the old one, which answers until it is done."""
    status = asyncio.run(_rebuild(invocation))
    say(pairs(_rows(status)))
    return 1 if status.state == "failed" else 0


INDEX_COMMANDS = (search_command, index_command, reindex_command)


@asynccontextmanager
async def _library(invocation: Invocation) -> AsyncGenerator[Library]:
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    entrance = Entrance(emit=view.emit, approvals=Nobody(), announce=False)
    async with opener(invocation)(invocation, entrance) as services:
        if services.library is None:
            raise InputError("There is no memory here.")
        yield services.library


async def _search(invocation: Invocation, query: str, wanted: Wanted) -> Found:
    async with _library(invocation) as library:
        return await library.search(query, wanted)


async def _status(invocation: Invocation) -> Status:
    async with _library(invocation) as library:
        return await library.status()


async def _rebuild(invocation: Invocation) -> Status:
    async with _library(invocation) as library:
        return await library.rebuild()


def _rows(status: Status) -> list[tuple[str, str]]:
    held = f", {status.withheld:,} of them from outside and shown with a mark" if status.withheld else ""
    vectors = f"{status.vectors:,} of {status.model}" if status.model else "none: it goes by words alone"
    return [
        ("index", _STATES[status.state]),
        ("made of", f"{status.files:,} files and {status.sessions:,} conversations"),
        ("passages", f"{status.passages:,}{held}"),
        ("vectors", vectors),
        ("size", f"{status.size / 1e6:.1f} MB"),
    ]


def _as_text(result: Result, query: str, *, why: bool) -> str:
    outside = " (from outside, not confirmed)" if result.is_external else ""
    lines = [f"{label(result)}{outside}", *(f"  {line}" for line in _body(result, query).splitlines())]
    if why:
        lines.append(f"  holds {result.share:.0%} of the query; ranked by {result.score:.2f}")
        lines += [f"  also searched: {' '.join(one.context.split())}" for one in result.passages if one.context]
    return "\n".join(lines)


def _body(result: Result, query: str) -> str:
    return result.text if len(result.text) <= SHOWN else excerpt(result.text, query, length=SHOWN)


def _as_json(result: Result) -> dict[str, object]:
    origin = result.first.origin
    return {
        "source": origin.source,
        "path": origin.path,
        "session": result.first.place.group if origin.source == "session" else "",
        "first": origin.first,
        "last": result.passages[-1].origin.last,
        "share": round(result.share, 3),
        "score": round(result.score, 3),
        "trust": "external" if result.is_external else origin.trust,
        "text": result.text,
    }
