"""As much of HTTP/1.1 as the proxy needs: heads and bodies, read strictly, written plainly."""

from __future__ import annotations

import re
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import AsyncGenerator

from msgspec import Struct

LARGEST_HEAD = 65_536
"""Bytes."""
CHUNK = 65_536
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")
HOP = frozenset(
    ("connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "trailer", "upgrade", "expect")
)
"""Headers for the next hop only; `Expect` is answered by the proxy itself."""


class BadMessageError(Exception):
    """What came is not HTTP as it should be; `status` is for the answer."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Head(Struct, frozen=True):
    """`first`, `second`, `third` are the words of the start line: method, target, version or version, code, reason."""

    first: str
    second: str
    third: str
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """The value of a header that is there once, in lower case. Raises `BadMessageError` when it is there twice."""
        found = [value for one, value in self.headers if one.lower() == name]
        if len(found) > 1:
            raise BadMessageError(f"the header {name} is there {len(found)} times")
        return found[0].strip().lower() if found else ""

    def without(self, *names: str) -> list[tuple[str, str]]:
        """The headers but for `names`, those of one hop, and those that `Connection` names."""
        connection = ",".join(value for one, value in self.headers if one.lower() == "connection")
        named = {word.strip().lower() for word in connection.split(",")}
        gone = HOP | named | set(names)
        return [(name, value) for name, value in self.headers if name.lower() not in gone]


async def read_head(reader: StreamReader) -> Head | None:
    """The next head; None at the end of the connection. Raises `BadMessageError`."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except IncompleteReadError as error:
        if error.partial:
            raise BadMessageError("the connection ended within a head") from None
        return None
    except LimitOverrunError:
        raise BadMessageError("the head is too long", status=431) from None
    start, *lines = data[:-4].decode("latin-1").split("\r\n")
    words = start.split(" ", 2)
    if len(words) < 2 or any(not word.isprintable() for word in words):
        raise BadMessageError("the first line is none of HTTP")
    headers: list[tuple[str, str]] = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or any(mark in value for mark in "\r\n\0"):
            raise BadMessageError("a header line is none of HTTP")
        headers.append((name, value.strip(" \t")))
    return Head(words[0], words[1], words[2] if len(words) > 2 else "", headers)


def write_head(start: str, headers: list[tuple[str, str]]) -> bytes:
    lines = [start, *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def is_chunked(head: Head) -> bool:
    """Whether the body comes in chunks. Raises `BadMessageError` for any other coding, or two lengths at once."""
    coding = head.get("transfer-encoding")
    if coding and (coding != "chunked" or head.get("content-length")):
        raise BadMessageError("the length of the body is not clear")
    return bool(coding)


def length(head: Head) -> int | None:
    """The length in bytes that the head names. Raises `BadMessageError`."""
    text = head.get("content-length")
    if text and not (text.isascii() and text.isdigit()):
        raise BadMessageError("the length of the body is no number")
    return int(text) if text else None


async def body(reader: StreamReader, *, chunked: bool, size: int | None) -> AsyncGenerator[bytes]:
    """The pieces of a body: in chunks, `size` bytes, or (None) all up to the end. Raises `BadMessageError`."""
    if chunked:
        async for piece in _chunks(reader):
            yield piece
        return
    left = size
    while left is None or left > 0:
        piece = await reader.read(CHUNK if left is None else min(left, CHUNK))
        if not piece:
            if left:
                raise BadMessageError("the connection ended within a body")
            return
        left = None if left is None else left - len(piece)
        yield piece


async def _chunks(reader: StreamReader) -> AsyncGenerator[bytes]:
    try:
        while True:
            line = await reader.readuntil(b"\r\n")
            size = line[:-2].partition(b";")[0].rstrip(b" \t")
            if not _SIZE.fullmatch(size):
                raise BadMessageError("a chunk does not say its size")
            left = int(size, 16)
            if not left:
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass
                return
            while left > 0:
                piece = await reader.readexactly(min(left, CHUNK))
                left -= len(piece)
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise BadMessageError("a chunk is longer than it says")
    except (IncompleteReadError, LimitOverrunError):
        raise BadMessageError("the chunks of a body are broken") from None
