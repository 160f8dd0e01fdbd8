"""`limpet chat`: a conversation on this terminal."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing

import click

from limpet.assistant.commands import COMMANDS
from limpet.cli.ask import TerminalApprovals, can_ask
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.message import as_text
from limpet.cli.talk import Talk
from limpet.cli.terminal import say
from limpet.cli.view import TerminalView
from limpet.errors import LimpetError, StoreError

LEAVE = ("exit", "quit", "/exit", "/quit")
GREETING = "Talk to Limpet. /help lists commands, exit leaves, Ctrl-C stops an answer, Alt-Enter begins a new line."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--session", type=WORDS, default="main", metavar="NAME", help="Which conversation. Default: main.")
@click.option("--model", type=WORDS, default="", metavar="PROVIDER/MODEL", help="The model to talk to.")
@click.option("--agent", "agent_id", type=WORDS, default="main", metavar="ID", help="Which agent. Default: main.")
@click.pass_obj
def chat(invocation: Invocation, *, session: str, model: str, agent_id: str) -> int:
    """Have a conversation on this terminal. Without a terminal each line of standard input is a message."""
    return asyncio.run(_chat(invocation, session, model=model, agent=agent_id))


async def _chat(invocation: Invocation, session: str, *, model: str, agent: str) -> int:
    view = TerminalView(sys.stdout, sys.stderr, live=True)
    person = can_ask()
    approvals = TerminalApprovals() if person else Nobody()
    entrance = Entrance(emit=view.emit, approvals=approvals, model=model, agent=agent)
    async with opener(invocation)(invocation, entrance) as services:
        talk = Talk(services, session, view.show)
        await services.models.get(talk.conversation.model_reference())
        if person:
            say(GREETING, error=True)
        await talk.catch_up()
        history = str(invocation.home().root / "history")
        async with aclosing(_typed(history) if person else _piped()) as lines:
            async for line in lines:
                if line.strip() in LEAVE:
                    break
                if line.strip():
                    await _say(talk, line)
    return 0


async def _say(talk: Talk, line: str) -> None:
    """One message; what goes wrong with it is told, and the conversation goes on."""
    try:
        await talk.say(line)
    except StoreError:
        raise
    except LimpetError as error:
        say(error.present(), error=True)


async def _typed(history: str) -> AsyncGenerator[str, None]:
    """Messages typed at a prompt with a history, several lines each if wished."""
    from prompt_toolkit import PromptSession  # 0.3 s, not for programs that pipe
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory

    words = WordCompleter([f"/{name}" for name in COMMANDS], sentence=True)
    session: PromptSession[str] = PromptSession(
        "> ", history=FileHistory(history), completer=words, complete_while_typing=False, enable_open_in_editor=True
    )
    while True:
        try:
            yield await session.prompt_async()
        except KeyboardInterrupt:
            say("(exit or Ctrl-D leaves)", error=True)
        except EOFError:
            return


async def _piped() -> AsyncGenerator[str, None]:
    """Messages from standard input, one a line."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ValueError):
        while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
            yield as_text(line, "standard input")
