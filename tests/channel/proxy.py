"""A line between a channel and its server that can be cut, or can lose an answer."""

from __future__ import annotations

import asyncio
import contextlib

from tests.channel.server import free_port


class Proxy:
    """Listens on `port` and passes everything on to `target`."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._mark = b""
        self.passed = b""
        """What the server has said since the last cut."""
        self.said = b""
        """What the client has said since then."""

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._pair, "127.0.0.1", self.port)

    async def shut(self) -> None:
        """Nobody gets through any more."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self.cut()

    async def cut(self) -> None:
        """All connections break; new ones are taken."""
        self.passed = self.said = b""
        for writer in list(self._writers):
            writer.transport.abort()
        while self._writers:
            await asyncio.sleep(0.001)

    def lose(self, mark: bytes) -> None:
        """From now on, when the client says `mark` the server hears it, but its answer is lost with the connection."""
        self._mark = mark

    def find(self) -> None:
        """Nothing is lost any more."""
        self._mark = b""

    async def _pair(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, behind[1]}
        mute = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._out(reader, behind[1], mute))
                group.create_task(self._back(behind[0], writer, mute))
        finally:
            for one in (writer, behind[1]):
                one.transport.abort()
                with contextlib.suppress(OSError):
                    await one.wait_closed()
                self._writers.discard(one)

    async def _out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mute: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                self.said = (self.said + data)[-65_536:]
                if self._mark and self._mark in data:
                    mute.set()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mute: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if mute.is_set():
                    self.passed = self.said = b""
                    break
                self.passed = (self.passed + data)[-65_536:]
                writer.write(data)
                await writer.drain()
        writer.transport.abort()
