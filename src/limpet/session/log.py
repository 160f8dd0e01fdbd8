"""The log of one session in memory: its entries and what follows from them, kept up to date entry by entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from limpet.session.aims import Aims
from limpet.session.project import Projection, settled
from limpet.session.rhythm import REMEMBERED, Pause, pause_of
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
    RecallSwitch,
    ToolResultEntry,
    TrustOnce,
    UserEntry,
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
    count that still holds, `answered` when the newest answer came (UTC ms, 0 = never), `pauses` the newest ones before
    a person went on, `aims` are goal and plan. `tainted`: what strangers wrote is in it, or in a summary of it.
    `recalls` is the owner's word on whether memories are recalled here, None for none.
    `vouched` is the turn during which the owner lets that pass, empty for none.
    `cache_key` is the name under which providers keep its beginning, where that is not the session's own.
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
        self.tainted = False
        self.recalls: bool | None = None
        self.vouched = ""
        self._vouching = False
        self.pauses: deque[Pause] = deque(maxlen=REMEMBERED)
        self.aims = Aims()
        self._projection = Projection()
        self._leaf = ""
        self.extend(entries)

    @property
    def last_seq(self) -> int:
        return self.entries[-1].seq if self.entries else 0

    def extend(self, entries: Iterable[Entry]) -> None:
        """Take in the next entries of the log, in their order."""
        fresh = list(entries)
        if reach := settled(fresh, self._leaf):
            self._settle(fresh[:reach])
        for entry in fresh[reach:]:
            self.entries.append(entry)
            self._projection.extend((entry,))
            self._leaf = next_leaf(self._leaf, entry)
            self._learn(entry)
            self._measure(entry)

    def _settle(self, fresh: list[Entry]) -> None:
        """Take in entries of which the last changes earlier messages, or leads elsewhere."""
        linear = True
        for entry in fresh:
            beside = isinstance(entry.payload, Label)
            linear = linear and (beside or entry.parent == self._leaf) and not isinstance(entry.payload, Leaf)
            self._leaf = next_leaf(self._leaf, entry)
        self.entries += fresh
        self._projection.extend(fresh)
        if not linear:
            self.prompt, self.model, self.tainted = None, "", False
            self.recalls = None
            self.vouched, self._vouching = "", False
            self.seen.clear()
            self.told.clear()
            self.pauses.clear()
            self.aims.clear()
            self.answered = 0
        for entry in fresh if linear else path(self.entries):
            self._learn(entry)
        self.measured = None
        self._measure(fresh[-1])

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

    @property
    def folds(self) -> int:
        """How many entries were looked at for the messages so far."""
        return self._projection.folds

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
        self.tainted = self.tainted or entry.trust == "external"
        self.aims.learn(entry)
        if self._vouching and isinstance(entry.payload, UserEntry):
            self.vouched, self._vouching = entry.turn, False
        match entry.payload:
            case PromptEntry() as prompt:
                self.prompt = prompt
                self.told.clear()
            case Note() as note:
                self.told.append(note)
            case ModelChange(model=model):
                self.model = model
            case RecallSwitch(on=on):
                self.recalls = on
            case TrustOnce():
                self._vouching = True
            case AssistantEntry():
                self.answered = entry.at
            case UserEntry() if self.answered and (pause := pause_of(entry.at - self.answered)):
                self.pauses.append(pause)
            case ToolResultEntry(result=result) if result.details.path and not result.is_error:
                self.seen[result.details.path] = result.details.sha256
                self.seen.update(result.details.files)
            case _:
                pass
