"""What a file is by its first bytes: an image with its size, another binary kind, or text."""

from __future__ import annotations

import struct

from msgspec import Struct

_SAMPLE = 8_192
_BINARY = (
    (b"%PDF-", "a PDF"),
    (b"PK\x03\x04", "a ZIP archive (or Office document)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"OggS", "Ogg audio"),
    (b"ID3", "MP3 audio"),
    (b"GGUF", "a GGUF model"),
)


class Picture(Struct, frozen=True):
    """An image of a kind that models take; its size in pixels, 0 when unknown."""

    mime: str
    width: int = 0
    height: int = 0


def picture(data: bytes) -> Picture | None:
    """The image that `data` is, if models take its kind."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return Picture("image/png", *struct.unpack(">II", data[16:24]))
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return Picture("image/gif", *struct.unpack("<HH", data[6:10]))
    if data.startswith(b"\xff\xd8\xff"):
        return Picture("image/jpeg", *_jpeg(data))
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Picture("image/webp", *_webp(data))
    return None


def what_binary(data: bytes) -> str:
    """The kind of binary data, empty for text."""
    for start, kind in _BINARY:
        if data.startswith(start) and b"\x00" in data[: _SAMPLE * 4] + b"\x00" * (start != b"MZ"):
            return kind
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    return "binary data" if b"\x00" in data[:_SAMPLE] else ""


def _jpeg(data: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return 0, 0


def _webp(data: bytes) -> tuple[int, int]:
    if data[12:16] == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if data[12:16] == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    if data[12:16] == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1
    return 0, 0
