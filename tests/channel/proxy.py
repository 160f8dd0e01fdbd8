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
        self._mute = False
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
        self._mute = False

    def lose(self, mark: bytes) -> None:
        """When the client says `mark`, the server hears it, and its answer is lost with the connection."""
        self._mark = mark

    async def _pair(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, behind[1]}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, behind[1], theirs=False))
                group.create_task(self._pass(behind[0], writer, theirs=True))
        finally:
            for one in (writer, behind[1]):
                one.transport.abort()
                with contextlib.suppress(OSError):
                    await one.wait_closed()
                self._writers.discard(one)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, theirs: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                if theirs and self._mute:
                    self._mute, self.passed, self.said = False, b"", b""
                    break
                if theirs:
                    self.passed = (self.passed + data)[-65_536:]
                else:
                    self.said = (self.said + data)[-65_536:]
                writer.write(data)
                if not theirs and self._mark and self._mark in data:
                    self._mark, self._mute = b"", True
                await writer.drain()
        writer.transport.abort()
        # The other direction ends as soon as it notices.
