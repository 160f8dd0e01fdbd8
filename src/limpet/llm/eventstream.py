"""Frames of AWS event streams (`application/vnd.amazon.eventstream`) out of bytes that may be split anywhere.

A frame: its length, the length of its headers, a CRC-32 of both; headers; payload; a CRC-32 of all before it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

_PRELUDE = struct.Struct(">III")
_MOST = 16 << 20
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXT = 7
_SIZED = (6, _TEXT)


class Frame(NamedTuple):
    """One message. Only headers that are texts are kept."""

    headers: Mapping[str, str]
    payload: bytes


class FrameError(ValueError):
    """The bytes are no event stream, or were damaged on their way."""


class FrameParser:
    """Turns chunks into frames."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def pending(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._rest)

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now. Raises `FrameError`."""
        data = self._rest + chunk if self._rest else chunk
        frames: list[Frame] = []
        at = 0
        while len(data) - at >= _PRELUDE.size:
            total, size, check = _PRELUDE.unpack_from(data, at)
            if crc32(data[at : at + 8]) != check:
                raise FrameError("the checksum of a frame's head is wrong")
            if not _PRELUDE.size + size + 4 <= total <= _MOST:
                raise FrameError(f"a frame of {total} bytes with {size} of headers")
            if len(data) - at < total:
                break
            frames.append(_frame(data[at : at + total], size))
            at += total
        self._rest = data[at:]
        return frames


def _frame(data: bytes, size: int) -> Frame:
    if crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
        raise FrameError("the checksum of a frame is wrong")
    end = _PRELUDE.size + size
    try:
        return Frame(_headers(data[_PRELUDE.size : end]), data[end:-4])
    except (IndexError, UnicodeDecodeError) as error:
        raise FrameError(f"the headers of a frame are not readable ({error})") from error


def _headers(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode(), data[end]
        at = end + 1
        if kind in _SIZED:
            length = int.from_bytes(data[at : at + 2], "big")
            if kind == _TEXT:
                found[name] = data[at + 2 : at + 2 + length].decode()
            at += 2 + length
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise FrameError(f"a header of unknown kind {kind}")
    return found


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message, as a service sends it."""
    head = b""
    for name, value in headers.items():
        text = value.encode()
        head += bytes([len(name)]) + name.encode() + bytes([_TEXT]) + len(text).to_bytes(2, "big") + text
    lengths = struct.pack(">II", _PRELUDE.size + len(head) + len(payload) + 4, len(head))
    data = lengths + crc32(lengths).to_bytes(4, "big") + head + payload
    return data + crc32(data).to_bytes(4, "big")
