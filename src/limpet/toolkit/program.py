"""Runs a program of the owner's own choice (no shell) under a deadline; its whole process group ends with it.

Not for commands of a model: those run in the sandbox.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

_PIECE = 1 << 16
_ERRORS = 4_096


class ProgramError(Exception):
    """It could not be started, did not end in time or said too much; the text is the end of a sentence."""


class Ran(Struct, frozen=True):
    """`errors` is the end of what it wrote to standard error."""

    code: int
    output: bytes
    errors: str


async def run_program(command: Sequence[str], *, seconds: float, largest: int) -> Ran:
    """Run `command` to its end; at most `largest` bytes of output are taken. Raises `ProgramError`."""
    try:
        # As `create_subprocess_exec` does it, which gives no way to close the pipes of a program that goes on talking.
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(limit=_PIECE, loop=loop),
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ProgramError(f"{command[0]} is not installed") from None
    except OSError as error:
        raise ProgramError(f"{command[0]} cannot be started: {error.strerror}") from None
    process = Process(transport, protocol, loop)
    assert process.stdout is not None
    assert process.stderr is not None
    said = asyncio.create_task(_tail(process.stderr))
    try:
        async with asyncio.timeout(seconds):
            output = await _read(process.stdout, largest)
            return Ran(await process.wait(), output, await said)
    except TimeoutError:
        raise ProgramError(f"{command[0]} was not done after {seconds:g} s") from None
    finally:
        said.cancel()
        await asyncio.gather(said, return_exceptions=True)
        await asyncio.shield(_end(process, transport))


async def _read(stream: asyncio.StreamReader, largest: int) -> bytes:
    found = bytearray()
    while piece := await stream.read(_PIECE):
        found += piece
        if len(found) > largest:
            raise ProgramError(f"it said more than {largest:,} bytes")
    return bytes(found)


async def _tail(stream: asyncio.StreamReader) -> str:
    found = b""
    while piece := await stream.read(_PIECE):
        found = (found + piece)[-_ERRORS:]
    return found.decode("utf-8", "replace").strip()


async def _end(process: Process, transport: asyncio.SubprocessTransport) -> None:
    """Nothing of the group outlives the call, also what the program left running."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    transport.close()
    await process.wait()
