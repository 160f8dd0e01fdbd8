"""The projection: what a model is sent, computed from the log alone.

What is particular about a model (whose thinking goes back to whom, ids, roles) is left to its wire, so one projection
serves every model of a session, also when one stands in for another. `project` is pure; `Projection` computes the same
one entry at a time, so that a long session costs no more per turn than a short one. Whatever the log holds, the
messages keep what every provider demands: the first is a user's, neighbours differ in role, every call has exactly one
result right after its message in the order of the calls, ids of calls are unique, no message is empty. Nothing is
repaired in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import structs

from limpet.session.prune import aged, pruned, shortened
from limpet.session.tree import next_leaf, visible
from limpet.types.content import AssistantBlock, Opaque, ResultBlock, Text, ToolCall, UserBlock
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    ImageAged,
    Label,
    Leaf,
    Note,
    Prune,
    ToolResultEntry,
    ToolStarted,
    UserEntry,
)
from limpet.types.message import AssistantMessage, Message, ToolMessage, UserMessage
from limpet.types.ports import PendingCall
from limpet.types.tool import FileIntent

UNKNOWN_OUTCOME = (
    "This call was interrupted and its outcome is unknown: it may have happened or not. Check before you do it again."
)


def project(entries: Iterable[Entry]) -> tuple[Message, ...]:
    """The messages of a log."""
    projection = Projection()
    projection.extend(tuple(entries))
    return projection.messages()


def settled(entries: Sequence[Entry], leaf: str) -> int:
    """How many of the next `entries` of a log with this leaf reach to the last one that changes earlier messages."""
    reach = 0
    for place, entry in enumerate(entries, start=1):
        linear = entry.parent == leaf and not isinstance(entry.payload, Leaf | Compaction | Prune | ImageAged)
        leaf = next_leaf(leaf, entry)
        if not linear and not isinstance(entry.payload, Label):
            reach = place
    return reach


class Projection:
    """The messages of a growing log. Message objects, once given out, stay the same ones.

    `folds` counts the entries that were looked at: what it has cost so far.
    """

    def __init__(self) -> None:
        self.folds = 0
        self._log: list[Entry] = []
        self._leaf = ""
        self._reset()

    def _reset(self) -> None:
        self._closed: list[Message] = []
        self._ids: set[str] = set()
        self._open: _OpenBatch | None = None
        self._shortened: dict[str, Literal["soft", "hard"]] = {}
        self._aged: set[str] = set()

    def extend(self, entries: Sequence[Entry]) -> None:
        """Take in the next entries of the log. However many change earlier messages, they are computed anew once."""
        reach = settled(entries, self._leaf)
        for entry in entries:
            self._leaf = next_leaf(self._leaf, entry)
        if reach:
            self._log += entries[:reach]
            self._rebuild()
        for entry in entries[reach:]:
            self._log.append(entry)
            self._fold(entry)

    def messages(self) -> tuple[Message, ...]:
        """Everything so far; calls without a result are answered with "outcome unknown"."""
        if self._open is None:
            return tuple(self._closed)
        return (*self._closed, *self._open.results())

    @property
    def closed(self) -> int:
        """How many of the messages are complete: all but the results of the newest calls."""
        return len(self._closed)

    def pending(self) -> tuple[PendingCall, ...]:
        """Calls of the newest assistant message that have no result yet, in their order."""
        return () if self._open is None else self._open.pending()

    def _rebuild(self) -> None:
        self._reset()
        summary, entries = visible(self._log)
        soft, hard = pruned(entries)
        self._shortened = {**dict.fromkeys(soft, "soft"), **dict.fromkeys(hard, "hard")}
        self._aged = {
            name for entry in entries if isinstance(entry.payload, ImageAged) for name in entry.payload.targets
        }
        if summary:
            self._say((Text(f"Summary of the conversation so far:\n\n{summary}"),), runtime="")
        for entry in entries:
            self._fold(entry)

    def _fold(self, entry: Entry) -> None:
        self.folds += 1
        match entry.payload:
            case UserEntry(message=message):
                content = aged(message.content) if entry.id in self._aged else message.content
                self._say(content, runtime=message.runtime)
            case Note(text=text):
                self._say((Text(f"<limpet-note>\n{text}\n</limpet-note>"),), runtime="")
            case AssistantEntry(message=message):
                self._answer(entry.id, message)
            case ToolStarted(assistant=assistant, index=index, intent=intent):
                if self._open is not None and self._open.entry == assistant:
                    self._open.started[index] = intent
            case ToolResultEntry() as result:
                if self._open is not None:
                    self._open.add(result, self._content(entry.id, result))
            case _:
                pass

    def _content(self, name: str, entry: ToolResultEntry) -> tuple[ResultBlock, ...]:
        """The blocks of the result `name`, as short as the log says."""
        how = self._shortened.get(name)
        content = shortened(entry.result, how) if how else entry.result.content
        return aged(content) if name in self._aged else content

    def _close(self) -> None:
        if self._open is not None:
            self._closed += self._open.results()
            self._open = None

    def _say(self, content: tuple[UserBlock, ...], *, runtime: str) -> None:
        self._close()
        content = tuple(block for block in content if not _blank(block))
        if not content and not runtime:
            return
        last = self._closed[-1] if self._closed else None
        if isinstance(last, UserMessage):
            earlier = (*last.content, Text(last.runtime)) if last.runtime else last.content
            self._closed[-1] = UserMessage(content=earlier + content, runtime=runtime)
        else:
            self._closed.append(UserMessage(content=content, runtime=runtime))

    def _answer(self, entry: str, message: AssistantMessage) -> None:
        self._close()
        if not self._closed:
            return
        content = tuple(self._named(block) for block in message.content if not _blank(block))
        if not any(isinstance(block, Text | ToolCall | Opaque) for block in content):
            return
        last = self._closed[-1]
        if isinstance(last, AssistantMessage):
            earlier = last.content if last.producer == message.producer else tuple(map(_unsigned, last.content))
            self._closed[-1] = AssistantMessage(
                content=tuple(block for block in earlier if block is not None) + content, producer=message.producer
            )
        else:
            self._closed.append(
                AssistantMessage(content=content, producer=message.producer, stop=message.stop, usage=message.usage)
            )
        calls = tuple(block for block in content if isinstance(block, ToolCall))
        if calls:
            self._open = _OpenBatch(entry, calls)

    def _named(self, block: AssistantBlock) -> AssistantBlock:
        """The block, a call under an id that no earlier call of the request has."""
        if not isinstance(block, ToolCall):
            return block
        name, copies = block.id or "call", 1
        while name in self._ids:
            copies += 1
            name = f"{block.id or 'call'}_{copies}"
        self._ids.add(name)
        if name == block.id:
            return block
        return ToolCall(
            id=name, name=block.name, arguments=block.arguments, fault=block.fault, signature=block.signature
        )


class _OpenBatch:
    """The newest assistant message with calls, until the next message closes it."""

    def __init__(self, entry: str, calls: tuple[ToolCall, ...]) -> None:
        self.entry = entry
        self.calls = calls
        self.started: dict[int, FileIntent | None] = {}
        self._results: dict[int, ToolMessage] = {}

    def add(self, result: ToolResultEntry, content: tuple[ResultBlock, ...]) -> None:
        """Take a result: the first for its call counts, one that belongs to no call here is left out."""
        if result.assistant == self.entry and 0 <= result.index < len(self.calls) and result.index not in self._results:
            call = self.calls[result.index]
            content = tuple(block for block in content if not _blank(block)) or (Text("(no output)"),)
            self._results[result.index] = ToolMessage(
                call_id=call.id, name=call.name, content=content, is_error=result.result.is_error
            )

    def results(self) -> list[ToolMessage]:
        return [self._results.get(index) or _unknown(call) for index, call in enumerate(self.calls)]

    def pending(self) -> tuple[PendingCall, ...]:
        return tuple(
            PendingCall(
                assistant=self.entry,
                index=index,
                call=call,
                started=index in self.started,
                intent=self.started.get(index),
            )
            for index, call in enumerate(self.calls)
            if index not in self._results
        )


def _unknown(call: ToolCall) -> ToolMessage:
    return ToolMessage(call_id=call.id, name=call.name, content=(Text(UNKNOWN_OUTCOME),), is_error=True)


def _blank(block: object) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def _unsigned(block: AssistantBlock) -> AssistantBlock | None:
    """The block without what only its maker may be sent."""
    match block:
        case Text() | ToolCall():
            return structs.replace(block, signature="")
        case _:
            return None
