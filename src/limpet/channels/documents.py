"""Documents attached to a message, as text: texts as they are, PDF, Office and e-books by the extra `documents`."""

from __future__ import annotations

from limpet.channels.media import Kind, safe_name, sniff
from limpet.errors import InputError
from limpet.toolkit.documents import SECONDS, document_text

LARGEST_TEXT = 2_000_000
"""Bytes of an attached text."""
_BY_LIBRARY = frozenset((".docx", ".epub", ".pdf", ".pptx", ".xls", ".xlsx"))


def readable(kind: Kind) -> bool:
    """Whether a file of this kind can be made text here: not whether the extra is installed."""
    return kind.family == "text" or bool(_BY_LIBRARY.intersection(kind.suffixes))


async def attached_text(data: bytes, name: str, *, seconds: float = SECONDS) -> str:
    """The text of an attached file, Markdown where it was a document.

    Raises `InputError` that says why there is none: no document, not installed, too large, too slow, unreadable.
    """
    kind = sniff(data, name)
    name = safe_name(name, kind)
    if kind.family == "text":
        if len(data) > LARGEST_TEXT:
            raise InputError(f"{name} is larger than {LARGEST_TEXT:,} bytes.")
        return await _page(data, name, seconds) if kind.mime == "text/html" else decoded(data)
    if not readable(kind):
        raise InputError(f"{name} is no document that can be read ({kind.mime}).")
    return await document_text(data, name, seconds=seconds)


async def _page(data: bytes, name: str, seconds: float) -> str:
    """A page as Markdown; as it stands where that cannot be had."""
    try:
        return await document_text(data, name, seconds=seconds)
    except InputError:
        return decoded(data)


def decoded(data: bytes) -> str:
    """Bytes as text: by their byte order mark, as UTF-8, else as Windows-1252, which also reads Latin-1."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    for encoding in ("utf-8", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")
