"""`FakePlatform`: a chat platform as one list of what happened, in memory or in a file that outlives every process.

Over a folder each record is a line of `platform.jsonl`, on disk before the call returns, so that a gateway can be
killed and what people saw is still there; several processes may share the folder.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from limpet.types.channel import Piece
from limpet.types.envelope import Address

Doing = Literal["send", "edit", "remove", "typing", "react", "offer", "connect"]
"""What a channel asks of the platform; troubles can be set for one of them."""

Kind = Literal["refuse", "limit", "lose", "unsure", "reject", "slow"]
"""`refuse` no connection, `limit` 429, `lose` done and no answer, `unsure` not done and no answer, `reject` never."""


class FakeFile(Struct, frozen=True, tag="file"):
    """A file somebody attached."""

    name: str
    data: bytes
    mime: str = "application/octet-stream"
    voice: bool = False


class Said(Struct, frozen=True, tag="said", omit_defaults=True):
    """Somebody said something, changed it (`replaces`) or pressed a button (`pressed`)."""

    event: str
    message: str
    address: Address
    sender: str
    text: str
    sender_name: str = ""
    chat_name: str = ""
    in_group: bool = False
    mentioned: bool = False
    to_all: bool = False
    replaces: str = ""
    reply_to: str = ""
    quoted: str = ""
    album: str = ""
    pressed: bool = False
    sent: int = 0
    files: tuple[FakeFile, ...] = ()


class Taken(Struct, frozen=True, tag="taken"):
    """The channel acknowledged an event."""

    event: str


class Again(Struct, frozen=True, tag="again"):
    """The platform gives an acknowledged event once more."""

    event: str


class Sent(Struct, frozen=True, tag="sent"):
    message: str
    piece: Piece
    at: int = 0


class Edited(Struct, frozen=True, tag="edited"):
    message: str
    piece: Piece


class Removed(Struct, frozen=True, tag="removed"):
    message: str
    address: Address


class Reacted(Struct, frozen=True, tag="reacted"):
    message: str
    address: Address
    emoji: str


class Typed(Struct, frozen=True, tag="typed"):
    address: Address


class Offered(Struct, frozen=True, tag="offered"):
    names: tuple[str, ...]


class Trouble(Struct, frozen=True, tag="trouble"):
    """The next `times` doings `on` (in `chat`, empty: any) meet this. `seconds`: how slow, or of `retry_after`."""

    id: int
    kind: Kind
    on: Doing = "send"
    times: int = 1
    seconds: float = 0.0
    chat: str = ""


class Met(Struct, frozen=True, tag="met"):
    """A trouble was met once."""

    trouble: int


class Switch(Struct, frozen=True, tag="switch"):
    """A state of the platform: `ready`, `doubled` (each event is given twice at once), `shuffled` (newest first)."""

    name: Literal["ready", "doubled", "shuffled"]
    on: bool


class Cut(Struct, frozen=True, tag="cut"):
    """The connections of that moment broke."""


Record = (
    Said | Taken | Again | Sent | Edited | Removed | Reacted | Typed | Offered | Trouble | Met | Switch | Cut
)  # fmt: skip
_Kind = TypeVar("_Kind", bound=Struct)


class Shown(Struct, frozen=True):
    """A message as people see it now. `sender` is empty for ours; `edits` are its earlier wordings, oldest first."""

    message: str
    sender: str
    text: str
    address: Address
    reply_to: str = ""
    edits: tuple[str, ...] = ()
    reaction: str = ""
    piece: Piece | None = None


class FakePlatform:
    """`FakePlatform()` lives in memory, `FakePlatform(folder)` in a file there. `records` is all that happened."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._file = Path(folder) / "platform.jsonl" if folder is not None else None
        self._read = 0
        self._records: list[Record] = []
        self._known: dict[str, Said] = {}
        self._open: dict[str, Said] = {}
        self._shown: dict[str, Shown] = {}
        self._switches: dict[str, bool] = {}
        self._troubles: list[Trouble] = []
        self._met: Counter[int] = Counter()
        self._cuts = 0
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)

    @property
    def records(self) -> Sequence[Record]:
        """What happened so far, also by the hand of other processes."""
        self._refresh()
        return self._records

    @property
    def cuts(self) -> int:
        """How often the connections broke."""
        self._refresh()
        return self._cuts

    def put(self, make: Callable[[int], _Kind]) -> _Kind:
        """Append what `make` gives for the number of the record; on disk when this returns."""
        with self._locked() as fd:
            self._refresh()
            record = make(len(self._records) + 1)
            assert isinstance(record, Record)
            self._write(fd, record)
        return record

    def of(self, kind: type[_Kind]) -> list[_Kind]:
        """The records of one kind, oldest first."""
        return [record for record in self.records if isinstance(record, kind)]

    def waiting(self) -> list[Said]:
        """Events that were not acknowledged, or are given again, in their order."""
        self._refresh()
        return list(self._open.values())

    def is_on(self, name: Literal["ready", "doubled", "shuffled"]) -> bool:
        """How a switch stands; without one the platform is ready and behaves."""
        self._refresh()
        return self._switches.get(name, name == "ready")

    def meet(self, on: Doing, chat: str = "") -> Trouble | None:
        """The trouble that a doing meets now, which is then used up by one."""
        with self._locked() as fd:
            self._refresh()
            for trouble in self._troubles:
                if trouble.on == on and trouble.chat in ("", chat) and self._met[trouble.id] < trouble.times:
                    self._write(fd, Met(trouble.id))
                    return trouble
        return None

    def visible(self, chat: str, thread: str = "") -> tuple[Shown, ...]:
        """The messages that stand in a chat, in order, with their last wording."""
        self._refresh()
        place = (chat, thread)
        return tuple(one for one in self._shown.values() if (one.address.chat, one.address.thread) == place)

    def message(self, message: str) -> Shown | None:
        """A message that stands somewhere, by its id."""
        self._refresh()
        return self._shown.get(message)

    def _note(self, record: Record) -> None:
        self._records.append(record)
        match record:
            case Said():
                self._known[record.event] = self._open[record.event] = record
            case Taken(event):
                self._open.pop(event, None)
            case Again(event):
                self._open[event] = self._known[event]
            case Trouble():
                self._troubles.append(record)
            case Met(trouble):
                self._met[trouble] += 1
            case Switch(name, on):
                self._switches[name] = on
            case Cut():
                self._cuts += 1
            case _:
                pass
        _show(self._shown, record)

    @contextmanager
    def _locked(self) -> Generator[int]:
        """The file, which nobody else changes meanwhile."""
        if self._file is None:
            yield -1
            return
        fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd
        finally:
            os.close(fd)

    def _write(self, fd: int, record: Record) -> None:
        if self._file is None:
            self._note(record)
            return
        torn = b"\n" if os.fstat(fd).st_size > self._read else b""  # what a killed process began
        line = torn + msgspec.json.encode(record) + b"\n"
        while line:
            line = line[os.write(fd, line) :]
        os.fsync(fd)
        self._refresh()

    def _refresh(self) -> None:
        """Read what was written since the last time."""
        if self._file is None or not self._file.exists() or self._file.stat().st_size == self._read:
            return
        with self._file.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        for line in whole.split(b"\n") if end else ():
            try:
                record = msgspec.json.decode(line, type=Record)
            except msgspec.DecodeError:
                continue  # torn by a kill: it never happened
            self._note(record)


def _show(found: dict[str, Shown], record: Record) -> None:
    """Let one record change what people see."""
    match record:
        case Said() if record.replaces in found:
            old = found[record.replaces]
            found[record.replaces] = replace(old, text=record.text, edits=(*old.edits, old.text))
        case Said(_, message, address, sender, text) if not record.pressed:
            found[message] = Shown(message, sender, text, address, reply_to=record.reply_to)
        case Sent(message, piece):
            found[message] = Shown(message, "", piece.body.markup, piece.address, piece.reply_to, piece=piece)
        case Edited(message, piece) if message in found:
            old = found[message]
            found[message] = replace(old, text=piece.body.markup, edits=(*old.edits, old.text), piece=piece)
        case Removed(message):
            found.pop(message, None)
        case Reacted(message, _, emoji) if message in found:
            found[message] = replace(found[message], reaction=emoji)
        case _:
            pass
