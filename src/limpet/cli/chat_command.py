"""`limpet chat`: a conversation on this terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from limpet.assistant.commands import COMMANDS
from limpet.cli.ask import TerminalApprovals, can_ask
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.logs import without_secrets
from limpet.cli.message import as_text, attach, files_in
from limpet.cli.talk import Talk
from limpet.cli.terminal import readable, say, wrapped
from limpet.cli.view import TerminalView
from limpet.errors import LimpetError, StoreError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

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
    view = TerminalView(sys.stdout, sys.stderr, live=True)
    person = can_ask()
    approvals = TerminalApprovals() if person else Nobody()
    entrance = Entrance(emit=view.emit, approvals=approvals, model=model, agent=agent, stays=True)
    async with opener(invocation)(invocation, entrance) as services:
        talk = Talk(services, session, view.reply, model=model)
        with talk.interruptible(person=person):
            await talk.check_model()
            if person:
                say(wrapped(GREETING), error=True)
            await talk.catch_up()
            history = str(invocation.home().root / "history")
            async with (
                talk.helped(),
                talk.tidying() as tidy,
                aclosing(_typed(history, talk.result) if person else _piped()) as lines,
            ):
                worst = await _converse(talk, lines, person=person, tidy=tidy)
                if not person:
                    worst = max(worst, await _hear(talk.finish))
    return 0 if person else worst


async def _converse(talk: Talk, lines: AsyncGenerator[str, None], *, person: bool, tidy: Callable[[], None]) -> int:
    """Say each line until there are no more, or one says so; gives the highest exit code. Results of helpers are heard
    between them.

    Only a `person` can attach files: a text that is piped in may be anybody's.
    """
    worst = 0
    async for line in lines:
        if line.strip() in LEAVE:
            break
        if line.strip():
            worst = max(worst, await _say(talk, line, files_in(line) if person else []))
        worst = max(worst, await _hear(talk.hear))
        tidy()
    return worst


async def _say(talk: Talk, line: str, files: list[str]) -> int:
    """One message with its files; what goes wrong is told, and the conversation goes on. Gives the exit code."""
    try:
        if not files:
            return await talk.say(line)
        services = talk.services
        said = await attach(line, files, piped="", blobs=services.blobs, transcriber=services.studio)
        return await talk.say(said.text, images=said.images)
    except StoreError:
        raise
    except LimpetError as error:
        say(without_secrets(error.present()), error=True)
        return error.exit_code


async def _hear(hear: Callable[[], Awaitable[int]]) -> int:
    """Results of helpers; what goes wrong is told, and the conversation goes on. Gives the exit code."""
    try:
        return await hear()
    except StoreError:
        raise
    except LimpetError as error:
        say(without_secrets(error.present()), error=True)
        return error.exit_code


async def _typed(history: str, result: Callable[[], Awaitable[None]]) -> AsyncGenerator[str, None]:
    """Messages typed at a prompt with a history, several lines each if wished; an empty one as soon as the `result` of
    a helper is there, and what was half typed stands at the next prompt."""
    from prompt_toolkit import PromptSession  # 0.3 s, not for programs that pipe
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.history import FileHistory

    words = WordCompleter([f"/{name}" for name in COMMANDS], sentence=True)
    session: PromptSession[str] = PromptSession(
        "> ", history=FileHistory(history), completer=words, complete_while_typing=False, enable_open_in_editor=True
    )
    again, half = False, ""
    while True:
        interrupted: list[str] = []
        watch = asyncio.create_task(_interrupt(result, interrupted))
        try:
            try:
                line = await session.prompt_async(default=half, handle_sigint=False)  # its handler takes ours away
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            again, half = False, "".join(interrupted)
            yield readable(line)
        except KeyboardInterrupt:
            if again:
                return
            again = True
            say("(Ctrl-C once more, exit or Ctrl-D leaves)", error=True)
        except EOFError:
            return


async def _interrupt(result: Callable[[], Awaitable[None]], typed: list[str]) -> None:
    """End a prompt for the result of a helper; `typed` is what stood there."""
    from prompt_toolkit.application import get_app_or_none  # loaded with the prompt

    await result()
    while (app := get_app_or_none()) is None or not app.is_running:  # on a dumb terminal not that of the session
        await asyncio.sleep(0.05)
    typed.append(app.current_buffer.text)
    app.exit(result="")


async def _piped() -> AsyncGenerator[str, None]:
    """Messages from standard input, one a line."""
    rest, more = b"", True
    while more:
        data = await _readable(sys.stdin.fileno())
        more = bool(data)
        *lines, rest = (rest + data).split(b"\n") if more else (rest, b"")
        for line in lines:
            yield as_text(line, "standard input")


async def _readable(descriptor: int) -> bytes:
    """What can be read now, waiting for something; empty at the end. No thread, which could not be stopped."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except OSError:  # a file: always readable
        return os.read(descriptor, 65_536)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
    return os.read(descriptor, 65_536)
