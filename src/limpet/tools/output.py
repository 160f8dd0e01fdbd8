"""Output of commands: collected within bounds, and made into text that a person could have read."""

from __future__ import annotations

import re
from codecs import lookup
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

_BLOCK = 65_536
_LONG_LINE = 1024**2
_HELD = 64
"""Bytes looked at for something that is not complete yet."""


class Collector:
    """Keeps the beginning and the end of a stream of bytes, at most `limit` together, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._first = _Blocks()
        self._last = _Blocks()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - self._first.size
        if room > 0:
            self._first.add(data[:room])
            data = data[room:]
        if data:
            self._last.add(data)
            self._last.trim(self._half)

    def since(self, place: int) -> tuple[bytes, int, bytes]:
        """What came from offset `place` on: the beginning's part, how many bytes after it are not kept, the end's."""
        self._trim()
        tail = self.total - self._last.size
        begun = max(place, self._first.size)
        left_out = max(tail - begun, 0) if self._last.size else 0
        return self._first.after(place), left_out, self._last.after(begun - tail)

    def shrink(self, limit: int) -> None:
        """Keep no more than `limit` bytes from now on."""
        first, last = b"".join(self._first.take()), b"".join(self._last.take())
        half = self._half = max(limit // 2, 1)
        if self.total == len(first) + len(last):
            first, last = (first + last)[:half], (first + last)[half:]
        self._first.add(first[:half])
        self._last.add(last[-half:])

    def _trim(self) -> None:
        self._last.cut(self._half)

    def take_text(self, *, fallback: str = "") -> str:
        """All that was kept, as `to_text`, and forget it: block by block, so that it is never in memory twice.

        Where bytes are left out, a line says how many.
        """
        self._trim()
        left_out = self.total - self._first.size - self._last.size
        if not left_out:
            return "".join(_texts(chain(self._first.take(), self._last.take()), fallback))
        note = f"\n[... {left_out:,} bytes of output not kept ...]\n"
        return "".join([*_texts(self._first.take(), fallback), note, *_texts(self._last.take(), fallback)])


class _Blocks:
    """A queue of bytes in blocks, so that many small writes cost no more than few large ones."""

    def __init__(self) -> None:
        self._blocks: deque[bytearray] = deque()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if self._blocks and len(self._blocks[-1]) < _BLOCK:
            self._blocks[-1] += data
        else:
            self._blocks.append(bytearray(data))

    def trim(self, size: int) -> None:
        """Forget whole blocks from the front while `size` bytes stay."""
        while self.size - len(self._blocks[0]) >= size:
            self.size -= len(self._blocks.popleft())

    def cut(self, size: int) -> None:
        """Forget all but the last `size` bytes."""
        if self.size > size:
            del self._blocks[0][: self.size - size]
            self.size = size

    def after(self, place: int) -> bytes:
        """The bytes from offset `place` on."""
        pieces: list[bytes] = []
        for block in self._blocks:
            if place < len(block):
                pieces.append(bytes(block[max(place, 0) :]))
            place -= len(block)
        return b"".join(pieces)

    def take(self) -> Iterator[bytes]:
        while self._blocks:
            block = self._blocks.popleft()
            self.size -= len(block)
            yield bytes(block)


def _texts(blocks: Iterable[bytes], fallback: str) -> Iterator[str]:
    """The text of `blocks`, each piece of whole lines, or of whole characters where a line is very long."""
    rest = b""
    for block in blocks:
        rest += block
        end = rest.rfind(b"\n") + 1
        if not end and len(rest) > _LONG_LINE:
            end = len(rest)
            while end > len(rest) - 4 and rest[end - 1] & 0xC0 == 0x80:
                end -= 1
            end -= rest[end - 1] >= 0xC0
        if end:
            yield to_text(rest[:end], fallback=fallback)
            rest = rest[end:]
    yield to_text(rest, fallback=fallback)


def cut_off(data: bytes) -> int:
    """How many bytes at the end of `data` may be the beginning of a character, a line end or an escape sequence."""
    tail = data[-_HELD:]
    if begun := re.search(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*)?\Z", tail):
        return len(tail) - begun.start()
    if tail.endswith(b"\r"):
        return 1
    for back in range(1, min(len(tail), 3) + 1):
        if tail[-back] >= 0xC0:
            length = 2 if tail[-back] < 0xE0 else 3 if tail[-back] < 0xF0 else 4
            return back if back < length else 0
        if tail[-back] < 0x80:
            break
    return 0


def to_text(data: bytes, *, fallback: str = "") -> str:
    """Bytes of a terminal program as plain text.

    A line that is not UTF-8 is decoded as `fallback`, when there is one and it fits; otherwise its odd bytes
    stay readable as `\\xNN`. Colours and cursor movements go, of a progress line its last state stays.
    """
    return clean(_decode(data, fallback))


def clean(text: str) -> str:
    """`text` without escape sequences and control characters; of overwritten lines the last state."""
    if "\x1b" in text:
        text = _escapes().sub("", text)
    while "\x08" in text:
        shorter = re.sub(r"[^\n\r\x08]\x08", "", text)
        text = shorter if shorter != text else text.replace("\x08", "")
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return re.sub(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]", "", text)


@cache
def _escapes() -> re.Pattern[str]:
    return re.compile(
        r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
        r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC: titles, links
        r"|[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
        r"|[ -/]*[0-~])"
    )


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
