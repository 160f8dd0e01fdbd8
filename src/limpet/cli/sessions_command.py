"""`limpet sessions`: conversations that are or were."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from limpet.cli.group import WORDS, Invocation
from limpet.cli.sessions_change import CHANGES, opened
from limpet.cli.sessions_find import find, reading
from limpet.cli.terminal import hand_over, pairs, say
from limpet.config.paths import find_workspace
from limpet.errors import InputError
from limpet.session import search
from limpet.session.branch import first_words
from limpet.session.export import jsonl, markdown
from limpet.session.keys import kind_of
from limpet.session.openclaw import openclaw
from limpet.session.overview import Overview
from limpet.session.search import Hit
from limpet.session.tree import path
from limpet.store import blobs, entries, sessions
from limpet.store.sessions import SessionRow
from limpet.types.entry import Entry, UserEntry

SHOWN = 240
"""Characters of an entry that a hit shows."""


@click.group("sessions", context_settings={"help_option_names": ["-h", "--help"]})
def sessions_group() -> None:
    """List, search, export and change conversations.

    SESSION is an id, the beginning of one, a key, or a name (default: main).
    """


for command in CHANGES:
    sessions_group.add_command(command)


@sessions_group.command("list")
@click.option("--limit", default=50, show_default=True, help="How many, newest first.")
@click.option("--live", "state", flag_value="live", help="Only those that go on.")
@click.option("--ended", "state", flag_value="ended", help="Only those that have ended.")
@click.option("--agent", type=WORDS, default="", metavar="ID", help="Only those of one agent.")
@click.option("--key", type=WORDS, default="", metavar="TEXT", help="Only those whose key holds TEXT.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_command(invocation: Invocation, *, limit: int, state: str | None, agent: str, key: str, as_json: bool) -> None:
    """The conversations, newest first."""
    with reading(invocation) as connection:
        rows = sessions.recent(connection, limit=limit, state=state or "", agent=agent, key=key) if connection else []
        seen = [Overview.of(connection, row) for row in _with_helpers(rows)] if connection else []
    if as_json:
        for row in seen:
            hand_over(msgspec.json.encode(row).decode() + "\n")
    elif seen:
        say(pairs((row.id, _line(row)) for row in seen))
    else:
        say("There is no conversation yet." if not (state or agent or key) else "There is no such conversation.")


def _with_helpers(rows: Sequence[SessionRow]) -> list[SessionRow]:
    """Helpers after the conversation that has spawned them, where that is listed."""
    listed = {row.id for row in rows}
    below: dict[str, list[SessionRow]] = {}
    for row in rows:
        if kind_of(row.key) == "subagent" and row.parent in listed:
            below.setdefault(row.parent, []).append(row)
    placed: list[SessionRow] = []
    waiting = [row for row in reversed(rows) if row not in below.get(row.parent, ())]
    while waiting:
        row = waiting.pop()
        placed.append(row)
        waiting += reversed(below.get(row.id, []))
    return placed


@sessions_group.command("show")
@click.argument("session", type=WORDS, default="main")
@click.option("--ids", is_flag=True, help="The id of every entry, for fork, rewind and erase.")
@click.option("--all", "everything", is_flag=True, help="Also what was left behind by /rewind.")
@click.pass_obj
def show_command(invocation: Invocation, session: str, *, ids: bool, everything: bool) -> None:
    """One conversation as it stands."""
    with reading(invocation) as connection:
        row = find(connection, session)
        assert connection is not None
        found = entries.load(connection, row.id)
    if ids:
        say(pairs((entry.id, _with_kind(entry)) for entry in found))
        return
    line = found if everything else path(found)
    say(markdown(line), end="")
    left = sum(bool(search.spoken(entry)) for entry in found) - sum(bool(search.spoken(entry)) for entry in line)
    if left:
        say(f"({left} messages on other branches: --all shows them.)", error=True)


@sessions_group.command("export", short_help="Write one conversation out.")
@click.argument("session", type=WORDS, default="main")
@click.option(
    "--format", "form", type=click.Choice(["markdown", "jsonl", "openclaw"]), default="markdown", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
@click.pass_obj
def export_command(invocation: Invocation, *, session: str, form: str, output: Path | None) -> None:
    """Write one conversation out: Markdown for people, every entry as a line of JSON, or OpenClaw's and Pi's tree."""
    with reading(invocation) as connection:
        row = find(connection, session)
        assert connection is not None
        found = entries.load(connection, row.id)
    match form:
        case "jsonl":
            text = jsonl(found)
        case "openclaw":
            home = invocation.home()
            folder = find_workspace(invocation.settings().settings.agent.workspace, home)
            text = openclaw(row, found, folder=str(folder), read=lambda blob: blobs.read(str(home.blobs), blob))
        case _:
            text = markdown(found)
    if output is None:
        hand_over(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}.") from None


@sessions_group.command("search")
@click.argument("words", type=WORDS, nargs=-1, required=True)
@click.option("--session", type=WORDS, default="", metavar="SESSION", help="Only in one conversation.")
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many, best first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def search_command(invocation: Invocation, *, words: tuple[str, ...], session: str, limit: int, as_json: bool) -> None:
    """Where WORDS were said, with what stands around: all of them, or where that is nowhere any of them."""
    wanted = " ".join(words)
    with reading(invocation) as connection:
        within = [find(connection, session).id] if session else None
    hits = asyncio.run(_search(invocation, wanted, within, limit=limit)) if connection is not None else []
    if as_json:
        for hit in hits:
            hand_over(msgspec.json.encode(_as_json(hit)).decode() + "\n")
    elif hits:
        say("\n\n".join(_as_text(hit, wanted) for hit in hits))
    else:
        say("Nothing was found.")


async def _search(invocation: Invocation, words: str, within: list[str] | None, *, limit: int) -> list[Hit]:
    async with opened(invocation) as services:
        while await services.store.write(search.fill):
            pass
        return services.store.read(lambda connection: search.search(connection, words, within=within, limit=limit))


def _line(row: Overview) -> str:
    state = f"ended ({row.end_reason})" if row.ended else "live"
    count = f"{row.turns} turn{'' if row.turns == 1 else 's'}"
    cost = f"${row.cost / 1e6:.2f}" if row.cost is not None else ""
    kind = "helper" if kind_of(row.key) == "subagent" else "fork"
    origin = f"{kind} of {row.parent}" if row.parent else ""
    parts = [_when(row.updated), row.key, state, count, cost, row.model, origin]
    return "  ".join(part for part in parts if part) + (f"\n{row.title}" if row.title else "")


def _as_json(hit: Hit) -> dict[str, object]:
    return {
        "session": hit.place.session,
        "key": hit.session.key,
        "seq": hit.place.seq,
        "anchor": hit.place.anchor,
        "around": [
            {"seq": one.seq, "id": one.id, "at": one.at, "who": search.who(one), "text": search.spoken(one)}
            for one in hit.around
        ],
    }


def _as_text(hit: Hit, words: str) -> str:
    lines = [f"{_when(hit.around[0].at)}  {hit.session.key}  {hit.place.session}"]
    for one in hit.around:
        mark = ">" if one.seq == hit.place.seq else " "
        lines.append(f"{mark} {search.who(one)}: {search.about(search.spoken(one), words, length=SHOWN)}")
    return "\n".join(lines)


def _with_kind(entry: Entry) -> str:
    kind = entry.payload.__struct_config__.tag
    words = (
        first_words(entry)
        if isinstance(entry.payload, UserEntry)
        else search.about(search.spoken(entry), "", length=60)
    )
    return f"{kind}{' (erased)' if entry.erased else ''}  {words}".rstrip()


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
