"""Server-sent events out of bytes that may be split anywhere (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import re
from typing import NamedTuple

_BREAK = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event. `name` is empty where the server gave none; `data` has its lines joined by newlines."""

    name: str
    data: bytes


class SseParser:
    """Turns chunks into events; a last event needs no blank line. Comments, ids, hints and blank data give none."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._first = True
        self._name = b""
        self._data: list[bytes] = []

    @property
    def pending(self) -> int:
        """Bytes of an event that is not complete."""
        return self._size + sum(map(len, self._data))

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        if self._after_cr and chunk:
            chunk = chunk[1:] if chunk.startswith(b"\n") else chunk
            self._after_cr = False
        if b"\n" not in chunk and b"\r" not in chunk:
            self._parts.append(chunk)
            self._size += len(chunk)
            return []
        self._after_cr = chunk.endswith(b"\r")
        if self._size:
            chunk = b"".join([*self._parts, chunk])
        lines = _BREAK.split(chunk) if b"\r" in chunk else chunk.split(b"\n")
        rest = lines.pop()
        self._parts, self._size = [rest], len(rest)
        events: list[ServerEvent] = []
        for line in lines:
            if line.startswith(b"data: "):  # nearly all there is
                self._data.append(line[6:])
                self._first = False
            elif (event := self._line(line)) is not None:
                events.append(event)
        return events

    def finish(self) -> list[ServerEvent]:
        """What is left at the end of the stream."""
        rest = b"".join(self._parts)
        self._parts, self._size = [], 0
        events = [self._line(rest), self._line(b"")]
        return [event for event in events if event is not None]

    def _line(self, line: bytes) -> ServerEvent | None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        name, parts = self._name, self._data
        self._name, self._data = b"", []
        data = parts[0] if len(parts) == 1 else b"\n".join(parts)
        return ServerEvent(name.decode("utf-8", "replace"), data) if data.strip() else None
