"""A server as a child process: one JSON-RPC message a line on its standard input and output.

Our own in place of the SDK's transport, which waits two seconds for a server to end by itself and two more before it
kills it. Here the whole process group is told to end after half a second, and is killed half a second later.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

GRACE = 0.5
"""Seconds to end by itself once its input is closed, and again once it was told to end."""
_REAPED = 2.0
_MOST_WAITING = 1_000
"""Messages that are not read yet, after which the server has to wait."""
_LONGEST = 256_000_000
"""Bytes of one message; a server that sends more is ended."""


class Program(Struct, frozen=True):
    """What is started: `argv` with exactly the environment `env`, in the folder `cwd` (empty: ours)."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str = ""


@asynccontextmanager
async def child(program: Program, log: Path) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """Start `program`, its standard error goes to `log`; it and its whole group are gone at the end. Raises `OSError`,
    `ValueError`."""
    with log.open("ab") as errors:
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            *program.argv,
            stderr=errors,
            env=dict(program.env),
            cwd=program.cwd or None,
            start_new_session=True,
        )
    process.transport = transport
    try:
        yield Incoming(process), Outgoing(process)
    finally:
        ending = asyncio.ensure_future(_end(process))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise


async def _end(process: _Process) -> None:
    """Close its input, then tell its group to end, then kill it. Every wait is bounded."""
    transport = process.transport
    pipe = transport.get_pipe_transport(0)
    if pipe is not None:
        pipe.close()
    process.drain()
    if not await _exits(process, GRACE):
        process.signal(signal.SIGTERM)
        if not await _exits(process, GRACE):
            process.signal(signal.SIGKILL)
            await _exits(process, _REAPED)
    process.signal(signal.SIGKILL)  # what it has left behind
    transport.close()


async def _exits(process: _Process, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.exited.wait()
    return process.exited.is_set()


class _Process(asyncio.SubprocessProtocol):
    """What the child says, in lines."""

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self.exited = asyncio.Event()
        self.lines: deque[bytes] = deque()
        self.over = False
        self._arrived = asyncio.Event()
        self._rest: list[bytes] = []
        self._size = 0
        self._paused = self._draining = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._draining:
            return
        first, *more = data.split(b"\n")
        self._rest.append(first)
        self._size += len(first)
        if more:
            self.lines.append(b"".join(self._rest))
            self.lines.extend(more[:-1])
            self._rest, self._size = [more[-1]], len(more[-1])
            self._arrived.set()
        if self._size > _LONGEST:
            self.signal(signal.SIGKILL)
        if len(self.lines) > _MOST_WAITING and not self._paused:
            self._paused = True
            self._output().pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.over = True
            self._arrived.set()

    def process_exited(self) -> None:
        self.exited.set()

    async def line(self) -> bytes | None:
        """The next one; None at the end."""
        while not self.lines:
            if self.over:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        if self._paused and len(self.lines) < _MOST_WAITING // 2:
            self._paused = False
            self._output().resume_reading()
        return self.lines.popleft()

    def drain(self) -> None:
        """Throw away what it still says, so that it cannot be stuck in saying it."""
        self._draining, self.over = True, True
        self._arrived.set()
        if self._paused:
            self._paused = False
            self._output().resume_reading()

    def signal(self, number: signal.Signals) -> None:
        """Send it to the whole group, also when the child itself is gone."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.transport.get_pid(), number)

    def _output(self) -> asyncio.ReadTransport:
        pipe = self.transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        return pipe


class Incoming:
    """Messages of the child: what of the SDK's port `ReadStream` is used of one that is watched."""

    def __init__(self, process: _Process) -> None:
        self._process = process

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or what is wrong with it. Raises `anyio.EndOfStream`."""
        from anyio import EndOfStream
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        line = await self._process.line()
        if line is None:
            raise EndOfStream
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line.decode("utf-8", "replace"), by_name=False))
        except ValueError as error:
            return error

    async def aclose(self) -> None:
        self._process.drain()


class Outgoing:
    """Messages to the child; implements the SDK's port `WriteStream`."""

    def __init__(self, process: _Process) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        """Queue a message; to a child that does not listen any more it is lost, which its end then tells."""
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        pipe = self._process.transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(f"{text}\n".encode("utf-8", "replace"))
        else:
            self._process.drain()

    async def aclose(self) -> None:
        pipe = self._process.transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
