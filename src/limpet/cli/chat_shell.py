"""`!command`: a command of the person at the terminal, on this machine, with their own rights. The agent has no part.

`!command` has the terminal to itself, and nobody is told of it. `!!command` is shown as well, and its output goes with
the next message.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
from msgspec import Struct

from limpet.cli.terminal import printable, say
from limpet.errors import InputError

MOST = 100_000
"""Bytes of output that go with a message: the end, where the outcome stands."""


class Ran(Struct, frozen=True):
    """`output` is empty when it was not kept."""

    command: str
    code: int
    output: str = ""

    def attachment(self) -> str:
        line = msgspec.json.encode(self.command).decode()
        return f'<command line={line} exit="{self.code}">\n{self.output.rstrip()}\n</command>'


async def run(command: str, *, keep: bool) -> Ran:
    """Run a line of the shell to its end, for as long as it takes. Raises `InputError` when there is no shell.

    Ctrl-C reaches the command as well as us; whoever calls this lets it pass.
    """
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = await asyncio.create_subprocess_exec(
            *(shell, "-c", command),
            stdout=asyncio.subprocess.PIPE if keep else None,
            stderr=asyncio.subprocess.STDOUT if keep else None,
        )
    except OSError as error:
        raise InputError(f"The shell {shell} cannot be started: {error.strerror}.") from None
    try:
        output = await _shown(process.stdout) if process.stdout is not None else b""
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    say(f"[exit code {code}{'; its output goes with your next message' if keep else ''}]", error=True)
    text = output.decode("utf-8", "replace")
    return Ran(command, code, printable(f"[…]\n{text}" if len(output) >= MOST else text))


async def _shown(stream: asyncio.StreamReader) -> bytes:
    kept = b""
    while data := await stream.read(65_536):
        sys.stdout.write(printable(data.decode("utf-8", "replace")))
        sys.stdout.flush()
        kept = (kept + data)[-MOST:]
    return kept
