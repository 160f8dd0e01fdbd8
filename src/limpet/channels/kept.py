"""What a channel remembers between two runs: small files in its folder."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

log = logging.getLogger(__name__)

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


def store(file: Path, data: bytes) -> None:
    """Replace a file as a whole, for this user only; its folder is made when it is not there."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)
    os.replace(draft, file)


class Kept(Generic[_Kind]):
    """The file `name` of `folder`; `empty` is what stands there before anything was saved."""

    def __init__(self, folder: str, name: str, empty: _Kind) -> None:
        self._file = Path(folder) / name
        self._kind = type(empty)
        self._empty = empty
        self._value: _Kind | None = None

    @property
    def value(self) -> _Kind:
        """What was saved last. A file that cannot be read counts as none, and the log says so."""
        if self._value is None:
            self._value = self._load()
        return self._value

    def save(self, value: _Kind) -> None:
        """Replace the file as a whole; after a power cut the one before may stand there."""
        self._value = value
        store(self._file, msgspec.json.encode(value))

    def _load(self) -> _Kind:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=self._kind)
        except FileNotFoundError:
            return self._empty
        except msgspec.DecodeError as error:
            log.warning("%s is begun anew, for it cannot be read: %s", self._file, error)
            return self._empty


MOST_PLACES = 500
"""Chats of which a channel remembers where it was; those with the newest messages stay."""


def noted(marks: dict[str, str], place: str, mark: str) -> dict[str, str]:
    """`marks` with the newest message of `place`, which stands last."""
    rest = {other: at for other, at in marks.items() if other != place}
    while len(rest) >= MOST_PLACES:
        del rest[next(iter(rest))]
    return {**rest, place: mark}
