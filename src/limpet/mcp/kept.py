"""What is known of a server between starts: its tools and prompts, and how the last start went. One small file each.

So the model can be told of tools without starting anything, and every process says the same of a server's health.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from limpet.config.write import write_atomically


class Listed(Struct, frozen=True, omit_defaults=True):
    """A tool as its server lists it. `schema` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: Raw = Raw(b'{"type":"object"}')
    read_only: bool = False


class Argument(Struct, frozen=True, omit_defaults=True):
    """What a prompt takes."""

    name: str
    description: str = ""
    required: bool = False


class ListedPrompt(Struct, frozen=True, omit_defaults=True):
    """A prompt as its server lists it."""

    name: str
    description: str = ""
    arguments: tuple[Argument, ...] = ()


class Record(Struct, frozen=True, omit_defaults=True):
    """`fingerprint` is that of the `ServerSpec` the tools belong to. Times are UTC milliseconds, 0 = never.

    `resources`: it has some to read. `dropped` says which tools cannot be used and why; `failure` why the last start
    failed, empty when it did not.
    """

    fingerprint: str = ""
    tools: tuple[Listed, ...] = ()
    prompts: tuple[ListedPrompt, ...] = ()
    resources: bool = False
    dropped: tuple[str, ...] = ()
    started_at: int = 0
    failure: str = ""
    failed_at: int = 0


_LOG_LIMIT = 1_000_000
"""Bytes after which the log of a server is begun anew; the one before is kept."""


class Records:
    """The records of one home, in the folder `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, server: str) -> Record:
        """The record of `server`; an empty one where there is none that can be read."""
        try:
            return msgspec.json.decode(self._file(server).read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError):
            return Record()

    def write(self, server: str, record: Record) -> None:
        """Raises `ConfigError`."""
        write_atomically(self._file(server), msgspec.json.encode(record).decode())

    def remove(self, server: str) -> None:
        self._file(server).unlink(missing_ok=True)

    def log(self, server: str) -> Path:
        """The file for what a server says on its standard error."""
        return self._folder / f"{_safe(server)}.log"

    def open_log(self, server: str) -> int:
        """Make sure that the log is there, and not too large; how many bytes it holds."""
        path = self.log(server)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        if path.stat().st_size > _LOG_LIMIT:
            path.replace(path.with_suffix(".log.1"))
            path.touch(mode=0o600)
        return path.stat().st_size

    def _file(self, server: str) -> Path:
        return self._folder / f"{_safe(server)}.json"


def _safe(server: str) -> str:
    """A file name of its own for each server, whatever it is called."""
    return re.sub(r"[^a-zA-Z0-9_-]", lambda found: f"%{ord(found[0]):x}", server)[:200]
