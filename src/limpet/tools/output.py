"""Output of commands: collected within bounds, and made into text that a person could have read."""

from __future__ import annotations

import re
from codecs import lookup
from collections import deque

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
    r"|[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[ -/]*[0-~])"
)
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_BACKSPACE = re.compile(r"[^\n\r\x08]\x08")


class Collector:
    """Keeps the beginning and the end of a stream of bytes, at most `limit` together, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._first = bytearray()
        self._last: deque[bytes] = deque()
        self._last_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._first)
        if room > 0:
            self._first += data[:room]
            data = data[room:]
        if data:
            self._last.append(data)
            self._last_size += len(data)
            while self._last_size - len(self._last[0]) >= self._half:
                self._last_size -= len(self._last.popleft())

    def data(self) -> bytes:
        """All that was kept; where bytes are left out, a line says how many."""
        last = b"".join(self._last)[-self._half :]
        left_out = self.total - len(self._first) - len(last)
        if not left_out:
            return bytes(self._first) + last
        return b"%s\n[... %d bytes of output not kept ...]\n%s" % (bytes(self._first), left_out, last)


def to_text(data: bytes, *, fallback: str = "") -> str:
    """Bytes of a terminal program as plain text.

    A line that is not UTF-8 is decoded as `fallback`, when there is one and it fits; otherwise its odd bytes
    stay readable as `\\xNN`. Colours and cursor movements go, of a progress line its last state stays.
    """
    return clean(_decode(data, fallback))


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; of overwritten lines the last state."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    while "\x08" in text:
        shorter = _BACKSPACE.sub("", text)
        text = shorter if shorter != text else text.replace("\x08", "")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _CONTROL.sub("", text)


def _last_state(line: str) -> str:
    states = line.split("\r")
    return next((state for state in reversed(states) if state.strip()), "")


def _decode(data: bytes, fallback: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return "\n".join(_decode_line(line, fallback) for line in data.split(b"\n"))


def _decode_line(line: bytes, fallback: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if fallback:
        try:
            return lookup(fallback).decode(line)[0]
        except (UnicodeDecodeError, LookupError):
            pass
    return line.decode("utf-8", "backslashreplace")
