"""`limpet memory`: what is remembered, and the owner's word on it."""

from __future__ import annotations

import asyncio
import re

import click

from limpet.assistant import commands_memory
from limpet.assistant.remembering import Remembering
from limpet.cli.group import WORDS, Invocation
from limpet.cli.memory_index import INDEX_COMMANDS
from limpet.cli.sessions_change import opened
from limpet.cli.terminal import say
from limpet.errors import InputError
from limpet.memory.scope import MemoryScope

EVERYTHING = 100_000
SCOPE = re.compile(r"(?:people|groups)/[a-z0-9][a-z0-9_-]*")


@click.group("memory", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--of", "scope", type=WORDS, default="", metavar="SCOPE", help="people/ID or groups/ID. Default: yours.")
@click.pass_context
def memory_group(context: click.Context, scope: str) -> None:
    """What is remembered: list, add, forget, edit, take back, confirm."""
    if scope and not SCOPE.fullmatch(scope):
        raise InputError(f"{scope!r} is nobody's memory.", hint="It is people/ID or groups/ID, as below memory/.")
    context.meta["limpet.scope"] = scope


@memory_group.command("list")
@click.argument("words", type=WORDS, default="")
@click.pass_context
def list_command(context: click.Context, words: str) -> None:
    """All entries, or those with WORDS in them: id, text, when and out of what."""
    _say(context, "list", words)


@memory_group.command("add")
@click.argument("text", type=WORDS)
@click.option("--today", is_flag=True, help="Into today's notes, not among what lasts.")
@click.pass_context
def add_command(context: click.Context, *, text: str, today: bool) -> None:
    """Remember TEXT."""
    _say(context, "add today" if today else "add", text)


@memory_group.command("forget")
@click.argument("word", metavar="ID|TEXT", type=WORDS)
@click.pass_context
def forget_command(context: click.Context, word: str) -> None:
    """Forget an entry everywhere it can be reached, and say what could not be."""
    _say(context, "forget", word)


@memory_group.command("edit")
@click.argument("entry", metavar="ID", type=WORDS)
@click.argument("text", type=WORDS)
@click.pass_context
def edit_command(context: click.Context, *, entry: str, text: str) -> None:
    """Put TEXT in the place of an entry."""
    _say(context, "edit", text, entry=entry)


@memory_group.command("undo")
@click.argument("steps", type=click.IntRange(1, commands_memory.STEPS), default=1)
@click.pass_context
def undo_command(context: click.Context, steps: int) -> None:
    """Take back the newest change, or the newest STEPS. What you edited since stays."""
    _say(context, "undo", str(steps))


@memory_group.command("confirm")
@click.argument("entry", metavar="ID|all", type=WORDS)
@click.pass_context
def confirm_command(context: click.Context, entry: str) -> None:
    """Take in what strangers had a part in."""
    _say(context, "confirm", entry)


@memory_group.command("reject")
@click.argument("entry", metavar="ID|all", type=WORDS)
@click.pass_context
def reject_command(context: click.Context, entry: str) -> None:
    """Throw away what strangers had a part in."""
    _say(context, "reject", entry)


@memory_group.command("history")
@click.option("--grep", "words", type=WORDS, default="", metavar="WORDS", help="Only paragraphs with WORDS in them.")
@click.pass_context
def history_command(context: click.Context, words: str) -> None:
    """What earlier conversations were about, from HISTORY.md."""
    _say(context, "history", words)


@memory_group.command("consolidate")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.pass_context
def consolidate_command(context: click.Context, dry_run: bool) -> None:
    """Take what lasts out of the day's notes into MEMORY.md now."""
    _say(context, "consolidate", "--dry-run" if dry_run else "")


@memory_group.command("status")
@click.pass_context
def status_command(context: click.Context) -> None:
    """How much is remembered, and what waits for your word."""
    _say(context, "status", "")


def _say(context: click.Context, act: str, rest: str, *, entry: str = "") -> None:
    """Do `act` of `/memory`, with an `entry` on that one, and print what came of it."""
    invocation, scope = context.find_object(Invocation), MemoryScope(str(context.meta["limpet.scope"]))
    assert invocation is not None

    async def main() -> str:
        async with opened(invocation) as services:
            known = Remembering(services, "", scope=scope)
            if act == "list":
                return commands_memory.listing(known, rest, limit=EVERYTHING)
            if act == "history":
                return commands_memory.history(known, rest, limit=EVERYTHING)
            return await commands_memory.said(known, act, f"{known.one(entry).id} {rest}" if entry else rest)

    say(asyncio.run(main()))


for command in INDEX_COMMANDS:
    memory_group.add_command(command)
