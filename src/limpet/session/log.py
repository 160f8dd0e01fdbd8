"""The log of one session in memory: its entries and what follows from them, kept up to date entry by entry."""

from __future__ import annotations

from collections.abc import Iterable

from limpet.session.project import Projection
from limpet.session.tree import next_leaf, path
from limpet.types.entry import Entry, Label, Leaf, ModelChange, Note, PromptEntry, ToolResultEntry
from limpet.types.message import Message
from limpet.types.ports import PendingCall


class Log:
    """`prompt` is the newest snapshot, `model` the newest choice of the owner, `seen` the SHA-256 with which each file
    was last read or written, `told` what Limpet itself has told the model since the snapshot.
    """

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        self.prompt: PromptEntry | None = None
        self.model = ""
        self.seen: dict[str, str] = {}
        self.told: list[Note] = []
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

    def messages(self) -> tuple[Message, ...]:
        return self._projection.messages()

    def pending(self) -> tuple[PendingCall, ...]:
        return self._projection.pending()

    def _learn(self, entry: Entry) -> None:
        match entry.payload:
            case PromptEntry() as prompt:
                self.prompt = prompt
                self.told.clear()
            case Note() as note:
                self.told.append(note)
            case ModelChange(model=model):
                self.model = model
            case ToolResultEntry(result=result) if result.details.path and not result.is_error:
                self.seen[result.details.path] = result.details.sha256
            case _:
                pass
