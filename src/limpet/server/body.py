"""The body of a request, within bounds of size and time."""

from __future__ import annotations

import asyncio

from starlette.requests import Request


class TooLargeError(Exception):
    """A body has more bytes than it may have."""


async def read_body(request: Request, most: int, *, seconds: float) -> bytes:
    """The raw bytes. Raises `TooLargeError`, `TimeoutError`, and `ClientDisconnect` when not all of them come."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length[:18]) > most:
        raise TooLargeError
    found = bytearray()
    async with asyncio.timeout(seconds):
        async for chunk in request.stream():
            found += chunk
            if len(found) > most:
                raise TooLargeError
    return bytes(found)
