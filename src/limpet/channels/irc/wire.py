"""A connection to an IRC server, line by line."""

from __future__ import annotations

import asyncio
import ssl

from limpet.channels.irc.line import Line, parse, written
from limpet.config.channels import IrcSettings
from limpet.errors import ChannelError

_LONGEST_LINE = 16_384
"""Bytes: 8,191 of tags, 512 of the rest, and some goodwill."""
_CLOSING = 2.0


class Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def put(self, command: str, *params: str) -> None:
        self.raw(written(command, *params))

    def raw(self, data: bytes) -> None:
        self._writer.write(data)

    def join(self, name: str) -> None:
        """`name` is a channel, with its key behind a blank where it has one."""
        self.raw(f"JOIN {' '.join(name.split()[:2])}\r\n".encode())

    async def read(self) -> Line:
        """The next line. Raises `ChannelError` when there is none any more."""
        try:
            raw = await self._reader.readline()
        except (OSError, ValueError) as error:
            raise ChannelError(f"The connection to the IRC server is lost: {error}") from None
        if not raw.endswith(b"\n"):
            raise ChannelError("The IRC server has closed the connection.")
        return parse(raw)

    async def close(self) -> None:
        if not self._writer.is_closing():
            self.put("QUIT", "")
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSING):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


async def connect(settings: IrcSettings, seconds: float) -> Wire:
    """A connection, not registered yet. Raises `ChannelError`."""
    context = ssl.create_default_context(cafile=settings.ca or None) if settings.tls else None
    try:
        async with asyncio.timeout(seconds):
            streams = await asyncio.open_connection(settings.server, settings.port, ssl=context, limit=_LONGEST_LINE)
    except (OSError, TimeoutError) as error:
        raise ChannelError(f"{settings.server} cannot be reached: {error or 'no answer'}") from None
    return Wire(*streams)
