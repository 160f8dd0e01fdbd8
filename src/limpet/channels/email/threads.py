"""Threads: what a mail belongs to, and what an answer has to say so that mail programs see it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from limpet.channels.email.reading import Mail
from limpet.channels.kept import store

_KEPT = 20
"""Mails that are named in an answer, beside the first."""
_NONE = "0" * 16


class Thread(Struct, frozen=True):
    """`references` are the mails up to the last that came in, oldest first."""

    subject: str = ""
    references: tuple[str, ...] = ()


class Threads:
    """Those of one mailbox, each a file in `folder`. `domain` is that of the ids we give."""

    def __init__(self, folder: str, domain: str) -> None:
        self._folder = Path(folder) / "threads"
        self._domain = domain
        self._ours = re.compile(rf"<limpet\.([0-9a-f]{{16}})\.[0-9a-f]{{24}}@{re.escape(domain)}>")

    def id(self, thread: str, key: str) -> str:
        """The Message-ID of a mail of ours, the same for the same key; answers to it tell `thread`."""
        return f"<limpet.{thread or _NONE}.{hashlib.sha256(key.encode()).hexdigest()[:24]}@{self._domain}>"

    def answered(self, mail: Mail) -> bool:
        """Whether it answers a mail of ours."""
        return any(self._ours.fullmatch(one) for one in mail.answers)

    def of(self, mail: Mail, event: str) -> str:
        """The thread of a mail: ours, when it answers us there; else it is named by the mail that began it."""
        for one in (*mail.answers, *reversed(mail.references)):
            if found := self._ours.fullmatch(one):
                return "" if found[1] == _NONE else found[1]
        first = next((one for one in (*mail.references, *mail.answers, mail.id) if one), event)
        return hashlib.sha256(first.encode()).hexdigest()[:16]

    def note(self, chat: str, thread: str, mail: Mail) -> None:
        """Keep what an answer to `mail` needs; on disk when this returns."""
        chain = tuple(dict.fromkeys((*mail.references, *mail.answers, *((mail.id,) if mail.id else ()))))
        kept = chain if len(chain) <= _KEPT else (chain[0], *chain[-_KEPT:])
        store(self._file(chat, thread), msgspec.json.encode(Thread(mail.subject, kept)))

    def find(self, chat: str, thread: str) -> Thread:
        try:
            return msgspec.json.decode(self._file(chat, thread).read_bytes(), type=Thread)
        except (FileNotFoundError, msgspec.DecodeError):
            return Thread()

    def _file(self, chat: str, thread: str) -> Path:
        return self._folder / f"{hashlib.sha256(f'{chat} {thread}'.encode()).hexdigest()[:32]}.json"
