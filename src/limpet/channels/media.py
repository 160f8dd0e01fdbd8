"""Files of messages: what they are by their first bytes, names that can do no harm, and how large they may be."""

from __future__ import annotations

import os.path
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from limpet.toolkit.unseen import is_unseen
from limpet.types.envelope import Attachment

Family = Literal["image", "audio", "video", "document", "archive", "text", "other"]

LONGEST_NAME = 100
"""Bytes of a file name."""
_LONGEST_SUFFIX = 16
_HEAD = 4_096
_SAMPLE = 65_536


class Kind(Struct, frozen=True):
    """What a file is. A name of it may end in any of `suffixes`, the first of which is the usual one."""

    family: Family
    mime: str
    suffixes: tuple[str, ...] = ()


def _kind(family: Family, mime: str, *suffixes: str) -> Kind:
    return Kind(family, mime, suffixes)


OTHER = _kind("other", "application/octet-stream")
PLAIN = _kind("text", "text/plain", ".txt")
_JPEG = _kind("image", "image/jpeg", ".jpg", ".jpeg", ".jpe")
_MP3 = _kind("audio", "audio/mpeg", ".mp3")
_AAC = _kind("audio", "audio/aac", ".aac")
_TIFF = _kind("image", "image/tiff", ".tiff", ".tif")
_MP4 = _kind("video", "video/mp4", ".mp4", ".m4v")
_M4A = _kind("audio", "audio/mp4", ".m4a", ".mp4", ".m4b")
_MOV = _kind("video", "video/quicktime", ".mov", ".qt")
_HEIC = _kind("image", "image/heic", ".heic", ".heif")
_3GP = _kind("video", "video/3gpp", ".3gp", ".3g2")
_WEBM = _kind("video", "video/webm", ".webm", ".weba")
_MKV = _kind("video", "video/x-matroska", ".mkv", ".mka")
_OGG = _kind("audio", "audio/ogg", ".ogg", ".oga", ".opus", ".spx")
_OGV = _kind("video", "video/ogg", ".ogv")
_ZIP = _kind("archive", "application/zip", ".zip")
_OLE = _kind("other", "application/x-ole-storage", ".doc", ".xls", ".ppt", ".msg", ".msi")
_HTML = _kind("text", "text/html", ".html", ".htm", ".xhtml")
_SVG = _kind("text", "image/svg+xml", ".svg")
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OPEN = "application/vnd.oasis.opendocument."

_STARTS: tuple[tuple[int, bytes, Kind], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", _kind("image", "image/png", ".png", ".apng")),
    (0, b"\xff\xd8\xff", _JPEG),
    (0, b"GIF87a", _kind("image", "image/gif", ".gif")),
    (0, b"GIF89a", _kind("image", "image/gif", ".gif")),
    (0, b"II*\0", _TIFF),
    (0, b"MM\0*", _TIFF),
    (8, b"WEBP", _kind("image", "image/webp", ".webp")),
    (8, b"WAVE", _kind("audio", "audio/wav", ".wav")),
    (8, b"AVI ", _kind("video", "video/x-msvideo", ".avi")),
    (0, b"ID3", _MP3),
    (0, b"fLaC", _kind("audio", "audio/flac", ".flac")),
    (0, b"#!AMR", _kind("audio", "audio/amr", ".amr")),
    (0, b"FLV\x01", _kind("video", "video/x-flv", ".flv")),
    (0, b"%PDF-", _kind("document", "application/pdf", ".pdf")),
    (0, b"{\\rtf", _kind("document", "application/rtf", ".rtf")),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OLE),
    (0, b"PK\x05\x06", _ZIP),
    (0, b"\x1f\x8b", _kind("archive", "application/gzip", ".gz", ".tgz")),
    (0, b"BZh", _kind("archive", "application/x-bzip2", ".bz2")),
    (0, b"\xfd7zXZ\0", _kind("archive", "application/x-xz", ".xz")),
    (0, b"7z\xbc\xaf\x27\x1c", _kind("archive", "application/x-7z-compressed", ".7z")),
    (0, b"Rar!\x1a\x07", _kind("archive", "application/vnd.rar", ".rar")),
    (0, b"\x28\xb5\x2f\xfd", _kind("archive", "application/zstd", ".zst")),
    (257, b"ustar", _kind("archive", "application/x-tar", ".tar")),
)
_RIFF = ("image/webp", "audio/wav", "video/x-msvideo")
_MEMBERS: tuple[tuple[bytes, Kind], ...] = (
    (b"application/epub+zip", _kind("document", "application/epub+zip", ".epub")),
    (_OPEN.encode() + b"text", _kind("document", _OPEN + "text", ".odt")),
    (_OPEN.encode() + b"spreadsheet", _kind("document", _OPEN + "spreadsheet", ".ods")),
    (_OPEN.encode() + b"presentation", _kind("document", _OPEN + "presentation", ".odp")),
    (b"word/document", _kind("document", _OFFICE + "wordprocessingml.document", ".docx", ".docm")),
    (b"xl/workbook", _kind("document", _OFFICE + "spreadsheetml.sheet", ".xlsx", ".xlsm")),
    (b"ppt/presentation", _kind("document", _OFFICE + "presentationml.presentation", ".pptx", ".pptm")),
)
_STREAMS: tuple[tuple[str, Kind], ...] = (
    ("WordDocument", _kind("document", "application/msword", ".doc")),
    ("Workbook", _kind("document", "application/vnd.ms-excel", ".xls")),
    ("PowerPoint Document", _kind("document", "application/vnd.ms-powerpoint", ".ppt")),
)
_BRANDS: Mapping[bytes, Kind] = MappingProxyType(
    {
        **dict.fromkeys((b"heic", b"heix", b"mif1", b"msf1", b"hevc"), _HEIC),
        **dict.fromkeys((b"avif", b"avis"), _kind("image", "image/avif", ".avif")),
        **dict.fromkeys((b"M4A ", b"M4B "), _M4A),
        b"qt  ": _MOV,
        **dict.fromkeys((b"3gp4", b"3gp5", b"3gp6", b"3g2a"), _3GP),
    }
)
_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        ".csv": "text/csv",
        ".tsv": "text/tab-separated-values",
        ".md": "text/markdown",
        ".json": "application/json",
        ".xml": "application/xml",
        ".yaml": "application/yaml",
        ".yml": "application/yaml",
        ".ics": "text/calendar",
        ".vcf": "text/vcard",
        ".css": "text/css",
    }
)


def _known() -> frozenset[str]:
    kinds = [kind for _, _, kind in _STARTS] + [kind for _, kind in (*_MEMBERS, *_STREAMS)] + list(_BRANDS.values())
    kinds += [_MP3, _AAC, _MP4, _WEBM, _MKV, _OGG, _OGV, _ZIP]
    return frozenset(suffix for kind in kinds for suffix in kind.suffixes)


_BINARY_SUFFIXES = _known()
"""Endings that promise a kind which can be told by its bytes."""


def sniff(data: bytes, name: str = "") -> Kind:
    """What `data` is, by its bytes; the ending of `name` only tells texts, and kinds of one container, apart."""
    for start, mark, kind in _STARTS:
        riff = kind.mime in _RIFF
        if data[start : start + len(mark)] == mark and (not riff or data.startswith(b"RIFF")):
            return _ole(data, kind) if kind is _OLE else kind
    suffix = os.path.splitext(name)[1].lower()
    if data.startswith(b"PK\x03\x04"):
        return _zipped(data)
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], _M4A if suffix in (".m4a", ".m4b") else _MP4)
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return _WEBM if b"webm" in data[:_HEAD] else _MKV
    if data.startswith(b"OggS"):
        return _OGV if b"\x80theora" in data[:_HEAD] else _OGG
    if _frames(data):
        return _AAC if data[1] & 0xF6 == 0xF0 else _MP3
    return _text(data, suffix) if is_text(data) else OTHER


def is_text(data: bytes) -> bool:
    """Whether `data` reads as text: it has no zero bytes and few controls, or says that it is UTF-16."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return len(data) % 2 == 0
    sample = data[:_SAMPLE]
    controls = sum(sample.count(code) for code in (*range(1, 8), *range(14, 27), *range(28, 32)))
    return b"\0" not in sample and controls * 50 <= len(sample)


def safe_name(name: str, kind: Kind) -> str:
    """`name` without path, unseen characters and leading dots, within 100 bytes, with an ending that fits `kind`."""
    name = unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode())
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    name = "".join(" " if one.isspace() else "_" if one in '<>:"|?*' else one for one in name if _seen(one))
    stem, suffix = os.path.splitext(name.strip(" .") or "file")
    if len(suffix.encode()) > _LONGEST_SUFFIX:
        stem, suffix = stem + suffix, ""
    suffix = _fitting(suffix, kind)
    stem = stem.strip(" .").encode()[: LONGEST_NAME - len(suffix.encode())].decode("utf-8", "ignore").rstrip(" .")
    if stem.split(".")[0].upper() in _RESERVED:
        stem = f"_{stem}"[: LONGEST_NAME - len(suffix)]
    return (stem or "file") + suffix


_RESERVED = frozenset(("CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in range(1, 10))))
"""Names that Windows keeps for devices."""


def sendable(files: Iterable[Attachment], upload: int) -> tuple[tuple[Attachment, ...], tuple[Attachment, ...]]:
    """Files that a platform takes which takes `upload` bytes of one, and those that it does not."""
    files = tuple(files)
    fit = tuple(file for file in files if 0 < file.size <= upload)
    return fit, tuple(file for file in files if file not in fit)


def _seen(character: str) -> bool:
    return character == "\u200d" or character.isspace() or not is_unseen(character)


def _fitting(suffix: str, kind: Kind) -> str:
    low = suffix.lower()
    if low in kind.suffixes or (kind.family == "text" and low and low not in _BINARY_SUFFIXES):
        return suffix
    if kind.suffixes:
        return kind.suffixes[0]
    return ".bin" if low in _BINARY_SUFFIXES or low in _TEXTS else suffix


def _zipped(data: bytes) -> Kind:
    for member, kind in _MEMBERS:
        if member in data[:_SAMPLE] or member in data[-_SAMPLE:]:
            return kind
    return _ZIP


def _ole(data: bytes, kind: Kind) -> Kind:
    for stream, office in _STREAMS:
        if stream.encode("utf-16-le") in data:
            return office
    return kind


def _frames(data: bytes) -> bool:
    """Whether `data` begins with a frame of AAC or MPEG audio; layer I (`FF FE`) is left to UTF-16."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return False
    if data[1] & 0xF6 == 0xF0:  # ADTS
        return data[2] >> 2 & 0xF <= 12
    layer, rate, frequency = data[1] >> 1 & 3, data[2] >> 4, data[2] >> 2 & 3
    return layer in (1, 2) and data[1] >> 3 & 3 != 1 and 0 < rate < 15 and frequency != 3


def _text(data: bytes, suffix: str) -> Kind:
    start = data[:1_024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return _HTML
    if start.startswith(b"<svg") or (start.startswith(b"<?xml") and b"<svg" in start):
        return _SVG
    if suffix in _HTML.suffixes and start.startswith(b"<"):
        return _HTML
    mime = _TEXTS.get(suffix)
    return Kind("text", mime, (suffix, ".txt")) if mime else PLAIN
