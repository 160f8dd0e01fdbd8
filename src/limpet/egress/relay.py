"""What the proxy carries: bytes both ways, or one request and its answer."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from limpet.egress.grants import Headers, Purse
from limpet.egress.http import (
    CHUNK,
    BadMessageError,
    Head,
    body,
    is_chunked,
    length,
    read_head,
    write_head,
)

Ends = tuple[StreamReader, StreamWriter]
NOTHING_FOLLOWS = ("204", "304")
_PIECEWISE = ("range", "if-range", "accept-encoding")
"""With these an answer would come in parts or packed, in which a secret is not recognised."""


async def tunnel(inner: Ends, outer: Ends, *, idle: float) -> None:
    """Carry bytes both ways, unseen, until both sides have ended or nothing came for `idle` seconds."""
    watch = _Watch(idle)
    async with asyncio.TaskGroup() as group:
        group.create_task(_copy(inner[0], outer[1], watch))
        group.create_task(_copy(outer[0], inner[1], watch))


class _Watch:
    """The patience of both directions: one may be silent while the other speaks."""

    def __init__(self, idle: float) -> None:
        self._idle = idle
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()

    async def read(self, reader: StreamReader) -> bytes:
        while True:
            try:
                async with asyncio.timeout_at(self._last + self._idle):
                    data = await reader.read(CHUNK)
            except TimeoutError:
                if self._loop.time() < self._last + self._idle:
                    continue
                raise
            self._last = self._loop.time()
            return data


async def _copy(reader: StreamReader, writer: StreamWriter, watch: _Watch) -> None:
    while data := await watch.read(reader):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        with suppress(OSError):
            writer.write_eof()
    else:
        writer.close()


async def exchange(head: Head, path: str, *, host: str, inner: Ends, outer: Ends, purse: Purse) -> str:
    """One request of the command (`head`, its body still to be read) and its answer; gives the status code.

    `path` is the target at the server, `host` what is said to it as its own name: never what the command says. The
    secrets of `purse` go in, and are taken out of the answer. Raises `BadMessageError`, `OSError`.
    """
    chunked = is_chunked(head)
    size = length(head) or 0
    if head.get("expect") == "100-continue":
        inner[1].write(b"HTTP/1.1 100 Continue\r\n\r\n")
    headers = head.without("host", *(_PIECEWISE if purse else ()))
    sent = [("Host", host), *purse.headers(headers), ("Connection", "close")]
    if purse:
        sent.append(("Accept-Encoding", "identity"))
    outer[1].write(write_head(f"{head.first} {purse.target(path)} HTTP/1.1", sent))
    sending = asyncio.create_task(_send(body(inner[0], chunked=chunked, size=size), outer[1], chunked=chunked))
    try:
        return await _answer(head, inner=inner, outer=outer, purse=purse)
    finally:
        sending.cancel()  # a server may answer before it has read everything
        with suppress(asyncio.CancelledError, BadMessageError, OSError):
            await sending


async def _send(pieces: AsyncGenerator[bytes], writer: StreamWriter, *, chunked: bool) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            writer.write(_framed(piece) if chunked else piece)
            await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _answer(head: Head, *, inner: Ends, outer: Ends, purse: Purse) -> str:
    answer = await _final_head(outer[0])
    code = answer.second
    if purse and answer.get("content-encoding") not in ("", "identity"):
        raise BadMessageError("the answer is packed although that was not asked for", status=502)
    redact = purse.redactor.redact
    empty = head.first == "HEAD" or code in NOTHING_FOLLOWS
    chunked, size = is_chunked(answer), length(answer)
    frames = not empty and (bool(purse) or chunked or size is None) and head.third == "HTTP/1.1"
    gone = ("transfer-encoding", "content-length") if not empty and (purse or chunked) else ("transfer-encoding",)
    headers: Headers = [(name, redact(value)) for name, value in answer.without(*gone)]
    headers += [("Transfer-Encoding", "chunked")] if frames else []
    inner[1].write(write_head(f"HTTP/1.1 {code} {redact(answer.third)}", [*headers, ("Connection", "close")]))
    if not empty:
        pieces = body(outer[0], chunked=chunked, size=size)
        try:
            await _send(_redacted(pieces, purse) if purse else pieces, inner[1], chunked=frames)
        except BadMessageError as error:  # too late for an answer of our own
            raise ConnectionError(str(error)) from None
    await inner[1].drain()
    return code


async def _final_head(reader: StreamReader) -> Head:
    """The head of the answer itself, after those that only say that it will come."""
    while True:
        answer = await read_head(reader)
        if answer is None or not answer.first.startswith("HTTP/1.") or not answer.second.isdigit():
            raise BadMessageError("the server does not answer in HTTP/1.1", status=502)
        if answer.second == "101" or not answer.second.startswith("1"):
            return answer


async def _redacted(pieces: AsyncGenerator[bytes], purse: Purse) -> AsyncGenerator[bytes]:
    stream = purse.redactor.stream()
    async with aclosing(pieces):
        async for piece in pieces:
            if shown := stream.feed(piece.decode("latin-1")):
                yield shown.encode("latin-1", "replace")
    if rest := stream.flush():
        yield rest.encode("latin-1", "replace")


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)
