"""`limpet chat`: a conversation on this terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING

import click

from limpet.cli.ask import TerminalApprovals, can_ask
from limpet.cli.chat_lines import piped, typed
from limpet.cli.chat_orders import obey
from limpet.cli.chat_room import Room
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.logs import without_secrets
from limpet.cli.message import files_in
from limpet.cli.talk import Talk
from limpet.cli.terminal import is_full, say, wrapped
from limpet.cli.view import TerminalView
from limpet.errors import ConfigError, NoModelError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from limpet.cli.chat_full import Full

LEAVE = ("exit", "quit", "/exit", "/quit")
GREETING = "Talk to Limpet. /help lists commands, @FILE attaches, exit leaves, Ctrl-C stops, Alt-Enter begins a line."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--session", type=WORDS, default="main", metavar="NAME", help="Which conversation. Default: main.")
@click.option("--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="The model to talk to.")
@click.option("--agent", "agent_id", type=WORDS, default="main", metavar="ID", help="Which agent. Default: main.")
@click.pass_obj
def chat(invocation: Invocation, *, session: str, model: str, agent_id: str) -> int:
    """Have a conversation on this terminal.

    Without a terminal each line of standard input is a message, and the exit code is that of `limpet agent` for the
    worst of them.
    """
    return asyncio.run(_chat(invocation, session, model=model, agent=agent_id))


async def _chat(invocation: Invocation, session: str, *, model: str, agent: str) -> int:
    person = can_ask()
    full = _full() if person and is_full() else None
    plain = TerminalView(sys.stdout, sys.stderr, live=True)
    emit, show = (full.view.emit, full.view.reply) if full else (plain.emit, plain.reply)
    approvals = full.approvals if full else TerminalApprovals() if person else Nobody()
    entrance = Entrance(emit=emit, approvals=approvals, model=model, agent=agent, stays=True)
    async with opener(invocation)(invocation, entrance) as services, full.view.living() if full else nullcontext():
        room, history = Room(Talk(services, session, show, model=model), full), str(invocation.home().root / "history")
        await room.talk.check_model()
        if person:
            say(wrapped(GREETING), error=True)
        worst = await _visit(room, history, person=person)
        while room.goto:
            room = await _next(room, Room(Talk(services, room.goto, show), full))
            await _visit(room, history, person=person)
    return 0 if person else worst


async def _next(here: Room, there: Room) -> Room:
    """The conversation to go on in: not another one whose model cannot be had."""
    here.goto, name = "", here.goto
    try:
        await there.talk.check_model()
    except (ConfigError, NoModelError) as error:
        say(without_secrets(error.present()), error=True)
        return here
    say(f"This is the conversation {name}.", error=True)
    return there


def _full() -> Full:
    from limpet.cli.chat_full import Full  # 0.5 s, not for programs that pipe and for terminals that only print

    return Full()


async def _visit(room: Room, history: str, *, person: bool) -> int:
    """Have one conversation until the person leaves it; gives the highest exit code."""
    talk = room.talk
    if room.full:
        room.full.attend(talk.services, talk.conversation.key)
    with talk.interruptible(person=person):
        await talk.catch_up()
        await room.stand()
        async with (
            talk.helped(),
            talk.tidying() as tidy,
            aclosing(typed(_prompt(room, history), talk.result, room.drafts) if person else piped()) as lines,
        ):
            worst = await _converse(room, lines, person=person, tidy=tidy)
            if not person:
                worst = max(worst, await room.finish())
    return worst


def _prompt(room: Room, history: str) -> PromptSession[str]:
    if room.full:
        return room.full.prompt(room.talk, history)
    from limpet.cli.chat_prompt import prompt_session  # 0.3 s, not for programs that pipe

    return prompt_session(history)


async def _converse(room: Room, lines: AsyncGenerator[str, None], *, person: bool, tidy: Callable[[], None]) -> int:
    """Say each line until there are no more, or one leaves; gives the highest exit code. Results of helpers are heard
    between them.

    Only a `person` can attach files and tell the terminal something: a text that is piped in may be anybody's.
    """
    worst = 0
    async for line in lines:
        if line.strip() in LEAVE:
            break
        if person and await obey(room, line):
            if room.goto:
                break
        elif line.strip():
            worst = max(worst, await room.say(line, files_in(line) if person else []))
        worst = max(worst, await room.hear())
        tidy()
        await room.stand()
    return worst
