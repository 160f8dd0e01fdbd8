"""What is in a message: JSON with a `text`, or the text itself; and by which name it is known."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import msgspec
from msgspec import Struct

from limpet.channels.kept import store

LARGEST = 1_000_000
"""Bytes of a payload that are read."""
_KEPT = 64
"""Made names that are kept: more than a broker sends without an answer (20 by default)."""


class Said(Struct, frozen=True):
    """A message of a device. `id` is its own name for it, empty: it has none."""

    text: str
    id: str = ""
    reply_to: str = ""
    sent: int = 0


class _Wire(Struct, frozen=True):
    """JSON of a device; `time` is seconds since 1970."""

    text: str | None = None
    id: str | int | None = None
    reply_to: str | int | None = None
    time: float | None = None


class _Answer(Struct, frozen=True, omit_defaults=True):
    id: str
    text: str
    reply_to: str = ""


def read(payload: bytes) -> Said | None:
    """What a device says; None: nothing, or no text. JSON without a `text` is the text itself, known by its `id`."""
    if len(payload) > LARGEST:
        return None
    try:
        whole = payload.decode()
    except UnicodeDecodeError:
        return None
    try:
        wire = msgspec.json.decode(payload, type=_Wire)
    except msgspec.DecodeError:
        wire = _Wire()
    text = whole if wire.text is None else wire.text
    if not text.strip():
        return None
    sent = int(wire.time * 1000) if wire.time is not None and 0 < wire.time < 1e11 else 0
    return Said(text, _word(wire.id), _word(wire.reply_to), sent)


def write(text: str, *, id: str, reply_to: str) -> bytes:
    """An answer as JSON."""
    return msgspec.json.encode(_Answer(id, text, reply_to))


def short(key: str) -> str:
    """A name that a device can keep, the same for the same key."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]


class Names:
    """Names for messages that have none of their own, in `names.json` of `folder`.

    A broker repeats what was not acknowledged under the same number and says so: that gets the name it had.
    """

    def __init__(self, folder: str) -> None:
        self._file = Path(folder) / "names.json"
        self._names: dict[str, str] | None = None

    def name(self, number: int, topic: str, payload: bytes, *, again: bool) -> str:
        """The name of a message; a new one is on disk when this returns."""
        digest = hashlib.sha256(topic.encode() + b"\0" + payload).hexdigest()[:16]
        mark = f"{number}:{digest}"
        names = self._all()
        if again and mark in names:
            return names[mark]
        names.pop(mark, None)
        names[mark] = uuid.uuid4().hex
        for old in list(names)[:-_KEPT]:
            del names[old]
        store(self._file, msgspec.json.encode(names))
        return names[mark]

    def _all(self) -> dict[str, str]:
        if self._names is None:
            try:
                self._names = msgspec.json.decode(self._file.read_bytes(), type=dict[str, str])
            except (FileNotFoundError, msgspec.DecodeError):
                self._names = {}
        return self._names


def own_name(folder: str) -> str:
    """Our name at the broker, made once: two homes with one name would throw each other out."""
    file = Path(folder) / "client_id"
    try:
        return file.read_text("ascii")
    except FileNotFoundError:
        made = f"limpet-{uuid.uuid4().hex[:12]}"  # 23 letters and digits are what every broker takes
        store(file, made.encode())
        return made


def _word(value: str | int | None) -> str:
    return "" if value is None else str(value)[:200]
