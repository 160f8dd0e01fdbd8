"""Mails taken apart, whatever they are like: broken ones lose nothing but their form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import getaddresses, parsedate_to_datetime
from typing import TypeGuard

from limpet.channels.email.page import words
from limpet.errors import InputError
from limpet.types.channel import File

_IDS = re.compile(r"<[!-;=?-~]{1,250}>")
_ADDRESS = re.compile(r"[^\s@<>\x00-\x1f]{1,64}@[^\s@<>\x00-\x1f]{1,255}")
_MULTIPART = re.compile(rb"multipart/", re.IGNORECASE)
_NESTED = 50
"""Parts of parts up to which a mail is taken apart: the parser's work grows with their product."""
_LONGEST_HEADER = 1_000


@dataclass(slots=True)
class Content:
    """What a part says. `page`: only HTML did."""

    texts: list[str] = field(default_factory=list[str])
    files: list[File] = field(default_factory=list[File])
    page: bool = False


class Mail:
    """One mail, from its bytes. With `whole` false they are only its header."""

    def __init__(self, data: bytes, *, whole: bool = True) -> None:
        plain = whole and len(_MULTIPART.findall(data)) <= _NESTED
        try:
            message = message_from_bytes(data) if plain else BytesHeaderParser().parsebytes(data)
            content = _content(message) if plain else Content()
        except (RecursionError, ValueError, LookupError, AttributeError, TypeError):  # the parser's own faults
            plain, message, content = False, BytesHeaderParser().parsebytes(data), Content()
        if whole and not plain:
            content = Content(files=[_file("mail.eml", "message/rfc822", data)])
        self._message = message
        self.text = "\n\n".join(content.texts).replace("\r\n", "\n").replace("\0", "").strip()
        self.files = tuple(content.files)
        self.subject = self.header("Subject")
        self.id = next(iter(_IDS.findall(self.header("Message-ID"))), "")
        self.answers = _IDS.findall(self.header("In-Reply-To"))
        self.references = _IDS.findall(" ".join(self.headers("References")))
        self.name, self.address, self.alone = self._sender()
        self.sent = self._sent()

    def header(self, name: str) -> str:
        """A header field in one line; empty: there is none."""
        return " ".join(_readable(self._message.get(name, "")).split())[:_LONGEST_HEADER]

    def headers(self, name: str) -> list[str]:
        """All fields of a name, from the top, as they stand."""
        return [" ".join(str(one).split()) for one in self._message.get_all(name, [])]

    def _sender(self) -> tuple[str, str, bool]:
        """Name and address of who wrote it, and whether nobody else is named beside."""
        fields = self.headers("From")
        found = [(name, address.lower()) for name, address in getaddresses(fields) if _ADDRESS.fullmatch(address)]
        if not found:
            return "", "", False
        return " ".join(_readable(found[0][0]).split())[:200], found[0][1], len(found) == len(fields) == 1

    def _sent(self) -> int:
        try:
            return max(0, int(parsedate_to_datetime(self.header("Date")).timestamp() * 1000))
        except (ValueError, TypeError, OverflowError, IndexError):
            return 0


def _content(part: Message) -> Content:
    kind = part.get_content_type()
    if part.is_multipart() and kind != "message/rfc822":
        inner = [_content(one) for one in part.get_payload() if _is_part(one)]
        return _best(inner) if kind == "multipart/alternative" else _all(inner)
    name = _readable(part.get_filename() or "")
    shown = not name and part.get_content_disposition() != "attachment"
    if shown and kind == "text/plain":
        return Content([_text(part)])
    if shown and kind == "text/html":
        return Content([words(_text(part))], page=True)
    if kind == "message/rfc822":
        return Content(files=[_file(name or "mail.eml", kind, part.as_bytes().partition(b"\n\n")[2])])
    return Content(files=[_file(name or f"part.{part.get_content_subtype()}", kind, _bytes(part))])


def _is_part(value: object) -> TypeGuard[Message]:
    return isinstance(value, Message)


def _all(parts: list[Content]) -> Content:
    texts = [text for part in parts for text in part.texts if text.strip()]
    return Content(texts, [file for part in parts for file in part.files], all(part.page for part in parts))


def _best(parts: list[Content]) -> Content:
    """Of several forms of one text the plain one, when it says something."""
    saying = [part for part in parts if "".join(part.texts).strip()]
    chosen = next((part for part in saying if not part.page), saying[0] if saying else Content())
    return Content(chosen.texts, [file for part in parts for file in part.files], chosen.page)


def _bytes(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text(part: Message) -> str:
    return _decoded(_bytes(part), part.get_content_charset() or "")


def _decoded(data: bytes, charset: str) -> str:
    for one in (charset, "utf-8"):
        try:
            if one:
                return data.decode(one)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")


def _readable(value: object) -> str:
    """A header field with its encoded words decoded."""
    try:
        parts: list[tuple[bytes | str, str | None]] = decode_header(value)  # pyright: ignore[reportArgumentType]
    except (HeaderParseError, ValueError, LookupError, UnicodeError):
        return str(value)
    texts = [
        one if isinstance(one, str) else _decoded(one, "" if charset == "unknown-8bit" else charset or "")
        for one, charset in parts
    ]
    return "".join(texts).encode("utf-8", "replace").decode()


def _file(name: str, mime: str, data: bytes) -> File:
    async def fetch(limit: int) -> bytes:
        if len(data) > limit:
            raise InputError(f"the file has {len(data)} bytes, more than {limit}")
        return data

    return File(name, mime, fetch, size=len(data))
