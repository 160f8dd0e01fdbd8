"""The log of one session in memory: its entries and what follows from them, kept up to date entry by entry."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from limpet.session.project import Projection
from limpet.session.tree import next_leaf, path, visible
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    ImageAged,
    Label,
    Leaf,
    ModelChange,
    Note,
    PromptEntry,
    Prune,
    ToolResultEntry,
)
from limpet.types.message import Message
from limpet.types.ports import PendingCall


class Measured(Struct, frozen=True):
    """What a provider counted: `tokens` of a request and its answer, which are the first `messages` of the next one."""

    tokens: int
    messages: int


class Log:
    """`prompt` is the newest snapshot, `model` the newest choice of the owner, `seen` the SHA-256 with which each file
    was last read or written, `told` what Limpet itself has told the model since the snapshot. `measured` is the newest
    count that still holds, `answered` when the newest answer came (UTC ms, 0 = never). `cache_key` is the name under
    which providers keep its beginning, where that is not the session's own.
    """

    def __init__(self, entries: Iterable[Entry] = (), *, cache_key: str = "") -> None:
        self.cache_key = cache_key
        self.entries: list[Entry] = []
        self.prompt: PromptEntry | None = None
        self.model = ""
        self.seen: dict[str, str] = {}
        self.told: list[Note] = []
        self.measured: Measured | None = None
        self.answered = 0
        self._projection = Projection()
        self._leaf = ""
        self.extend(entries)

    @property
    def last_seq(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take in the next entries of the log, in their order."""
        for entry in entries:
            self.entries.append(entry)
            self._projection.add(entry)
            linear = entry.parent == self._leaf and not isinstance(entry.payload, Leaf)
            self._leaf = next_leaf(self._leaf, entry)
            if linear or isinstance(entry.payload, Label):
                self._learn(entry)
            else:
                self.prompt, self.model = None, ""
                self.seen.clear()
                self.told.clear()
                for kept in path(self.entries):
                    self._learn(kept)
                self.measured = None
            self._measure(entry)

    @property
    def leaf(self) -> str:
        """The entry on which the next one will hang."""
        return self._leaf

    def visible(self) -> tuple[str, list[Entry]]:
        """The newest summary (or nothing) and the entries that a model still sees."""
        return visible(self.entries)

    def path(self) -> list[Entry]:
        """The entries from the beginning to the leaf, those that a summary covers included."""
        return path(self.entries)

    def messages(self) -> tuple[Message, ...]:
        return self._projection.messages()

    def pending(self) -> tuple[PendingCall, ...]:
        return self._projection.pending()

    def _measure(self, entry: Entry) -> None:
        match entry.payload:
            case AssistantEntry(message=message) if message.usage.total:
                self.measured = Measured(message.usage.total, self._projection.closed)
            case Compaction() | Prune() | ImageAged() | PromptEntry() | ModelChange():
                self.measured = None
            case _:
                pass

    def _learn(self, entry: Entry) -> None:
        match entry.payload:
            case PromptEntry() as prompt:
                self.prompt = prompt
                self.told.clear()
            case Note() as note:
                self.told.append(note)
            case ModelChange(model=model):
                self.model = model
            case AssistantEntry():
                self.answered = entry.at
            case ToolResultEntry(result=result) if result.details.path and not result.is_error:
                self.seen[result.details.path] = result.details.sha256
            case _:
                pass
