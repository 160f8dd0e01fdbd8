"""Where the messages of a conversation come from: a prompt, or lines that are piped in."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING

from limpet.cli.message import as_text
from limpet.cli.terminal import readable, say

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession


async def typed(
    session: PromptSession[str], result: Callable[[], Awaitable[None]], drafts: list[str]
) -> AsyncGenerator[str, None]:
    """Messages typed at a prompt, several lines each if wished; an empty one as soon as the `result` of a helper is
    there. What was half typed then, and other `drafts`, stand at the next prompt."""
    again = False
    while True:
        half = "\n".join(drafts)
        drafts.clear()
        watch = asyncio.create_task(_interrupt(result, drafts))
        try:
            try:
                line = await session.prompt_async(default=half, handle_sigint=False)  # its handler takes ours away
            finally:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)
            again = False
            yield readable(line)
        except KeyboardInterrupt:
            if again:
                return
            again = True
            say("(Ctrl-C once more, exit or Ctrl-D leaves)", error=True)
        except EOFError:
            return


async def _interrupt(result: Callable[[], Awaitable[None]], drafts: list[str]) -> None:
    """End a prompt for the result of a helper; what stood there becomes one of the `drafts`."""
    from prompt_toolkit.application import get_app_or_none  # loaded with the prompt

    await result()
    while (app := get_app_or_none()) is None or not app.is_running:  # on a dumb terminal not that of the session
        await asyncio.sleep(0.05)
    drafts.append(app.current_buffer.text)
    app.exit(result="")


async def piped() -> AsyncGenerator[str, None]:
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
