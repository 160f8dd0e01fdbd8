"""The end of a login: the browser comes to a loopback address of ours, or the person pastes where it was sent to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl, urlsplit

from limpet.errors import InputError

_PATH = "/callback"
_DONE = "You are logged in. This page can be closed."
_FAILED = "The login failed. The terminal says why."
_LONGEST = 16_000
"""Bytes of a request."""


class Callback:
    """Waits for the answer of one login. `url` is where the browser is sent."""

    def __init__(self, port: int, *, patience: float) -> None:
        self.url = f"http://127.0.0.1:{port}{_PATH}"
        self._patience = patience
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    def take(self, address: str) -> bool:
        """Take the address to which the browser was sent; False when it is none with an answer."""
        values = dict(parse_qsl(urlsplit(address.strip()).query))
        if "code" not in values and "error" not in values:
            return False
        if not self._answer.done():
            self._answer.set_result(values)
        return True

    async def wait(self) -> Mapping[str, str]:
        """What the answer says. Raises `InputError` for a no, and when none comes in time."""
        try:
            async with asyncio.timeout(self._patience):
                values = await self._answer
        except TimeoutError:
            raise InputError(f"Nobody has logged in within {self._patience:.0f} s.") from None
        if "error" in values:
            raise InputError(f"The login was refused: {values.get('error_description') or values['error']}")
        return values

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        try:
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                words = head.split(" ", 2)
                ours = len(words) == 3 and words[0] == "GET" and urlsplit(words[1]).path == _PATH
                taken = ours and self.take(words[1])
                text = (_DONE if "error=" not in words[1] else _FAILED) if taken else "There is nothing here."
                status = "200 OK" if taken else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{text}".encode()
                )
                await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a browser
        finally:
            writer.close()


@asynccontextmanager
async def listening(*, patience: float) -> AsyncGenerator[Callback]:
    """A callback on a port that the system chooses, until the block ends; it waits `patience` seconds."""
    callback: list[Callback] = []
    server = await asyncio.start_server(
        lambda reader, writer: callback[0].serve(reader, writer), "127.0.0.1", 0, limit=_LONGEST
    )
    async with server:
        callback.append(Callback(server.sockets[0].getsockname()[1], patience=patience))
        yield callback[0]
