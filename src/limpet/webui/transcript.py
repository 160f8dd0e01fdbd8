"""A conversation as the page shows it: items, folded out of the entries of the log and of what was delivered beside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from limpet.session import breaks
from limpet.session.export import plain
from limpet.store import entries
from limpet.store.sql import Connection
from limpet.types.content import Image, Text, Thinking
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    Note,
    ToolResultEntry,
    ToolStarted,
    UserEntry,
)
from limpet.types.envelope import OutboxRow
from limpet.webui import texts
from limpet.webui.rich import Node, rich

Kind = Literal["user", "agent", "note", "notice", "summary", "divider"]
PAGE = 60
"""Messages that are shown at once; earlier ones are fetched."""
CHUNK = 400
"""Entries that are read at once on the way back."""
SHOWN = 20_000
"""Characters of an output or of arguments that a card shows."""
APPROVAL_KEY = "approval:"
BESIDE = "o"
"""With it the ids of items begin that are no entries."""


class Card(Struct, omit_defaults=True):
    """A tool call. `call` names it, times are UTC ms, `duration` milliseconds."""

    call: str
    name: str
    arguments: str
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    output: str = ""
    diff: str = ""
    duration: int = 0
    begun: int = 0
    images: list[str] = []


class Linked(Struct, frozen=True, omit_defaults=True):
    """A file to be seen or fetched, by its hash."""

    blob: str
    name: str
    mime: str = ""
    is_image: bool = False


class Item(Struct, omit_defaults=True, kw_only=True):
    """One message. `text` is shown as it is, `blocks` are Markdown; `label` is what the owner calls this place."""

    id: str
    kind: Kind
    at: int
    who: str = ""
    text: str = ""
    blocks: list[Node] = []
    thinking: str = ""
    cards: list[Card] = []
    files: list[Linked] = []
    meta: str = ""
    label: str = ""
    is_live: bool = False
    acts: list[str] = []


class Transcript:
    """The items of entries that are on the way to the leaf, in order."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self._cards: dict[str, Card] = {}
        self._holders: dict[str, Item] = {}

    def take(self, found: Iterable[Entry]) -> list[Item]:
        """Take in the next entries; gives the items that are new or have changed, each once, in order."""
        changed: dict[str, Item] = {}
        for entry in found:
            if (item := self._one(entry)) is not None:
                changed[item.id] = item
        return list(changed.values())

    def label(self, names: dict[str, str]) -> None:
        """Show the labels (by name, each with its entry)."""
        for name, target in names.items():
            if (item := self.items.get(target)) is not None:
                item.label = name

    def _one(self, entry: Entry) -> Item | None:
        match entry.payload:
            case ToolStarted(assistant=assistant, index=index):
                return self._started(f"{assistant}.{index}", entry.at)
            case ToolResultEntry() as result:
                return self._result(entry, result)
            case _:
                item = _item(entry)
                if item is not None:
                    self.items[item.id] = item
                    for card in item.cards:
                        self._cards[card.call] = card
                        self._holders[card.call] = item
                return item

    def _started(self, call: str, at: int) -> Item | None:
        card = self._cards.get(call)
        if card is None:
            return None
        card.state, card.begun = "running", at
        return self._holders[call]

    def _result(self, entry: Entry, payload: ToolResultEntry) -> Item | None:
        call, result = f"{payload.assistant}.{payload.index}", payload.result
        card = self._cards.get(call)
        if card is None:
            return None
        card.state = "failed" if result.is_error else "done"
        card.output = texts.ERASED if entry.erased else cut(result.text)
        card.diff = cut(result.details.diff)
        card.duration = result.details.duration or (entry.at - card.begun if card.begun else 0)
        card.images = [block.blob for block in result.content if isinstance(block, Image)]
        return self._holders[call]


def _item(entry: Entry) -> Item | None:
    """The item of an entry that has one of its own."""
    match entry.payload:
        case UserEntry(message=message, sender=sender):
            images = [block for block in message.content if isinstance(block, Image)]
            return Item(
                id=entry.id,
                kind="user",
                at=entry.at,
                who="" if entry.trust == "owner" else sender,
                text=texts.ERASED if entry.erased else "".join(map(plain, message.content)),
                files=[Linked(one.blob, one.name, one.mime, is_image=True) for one in images],
                acts=["copy", "edit", "fork", "label"],
            )
        case AssistantEntry() as answer:
            return _answer(entry, answer)
        case Compaction(summary=summary, how=how):
            told = texts.REDUCED[how]
            return Item(id=entry.id, kind="summary", at=entry.at, who=told, blocks=rich(summary))
        case Note(text=text, origin=origin):
            return Item(id=entry.id, kind="note", at=entry.at, who=origin, text=cut(text))
        case _:
            found = breaks.breaks((entry,))
            return Item(id=entry.id, kind="divider", at=entry.at, text=found[0].why) if found else None


def _answer(entry: Entry, answer: AssistantEntry) -> Item:
    message = answer.message
    cards = [Card(f"{entry.id}.{index}", call.name, pretty(call.arguments)) for index, call in enumerate(message.calls)]
    used = message.usage
    parts = [message.producer.model]
    parts += [texts.TOKENS.format(input=used.input + used.cache_read + used.cache_write, output=used.output)]
    parts += [texts.CACHED.format(tokens=used.cache_read)] if used.cache_read else []
    parts += [dollars(used.cost)] if used.cost is not None else []
    parts += [texts.STOPS[message.stop]] if message.stop in texts.STOPS else []
    said = "\n\n".join(block.text for block in message.content if isinstance(block, Text) and block.text.strip())
    return Item(
        id=entry.id,
        kind="agent",
        at=entry.at,
        blocks=rich(texts.ERASED if entry.erased else said),
        text=said,
        thinking=cut("\n\n".join(block.text for block in message.content if isinstance(block, Thinking))).strip(),
        cards=cards,
        meta=" · ".join(parts),
        acts=[] if cards else ["copy", "fork", "label"],
    )


def beside(row: OutboxRow) -> Item | None:
    """What was delivered without being an answer in the log: replies to commands, notices, files."""
    if row.beside.choices or row.key.startswith(APPROVAL_KEY):
        return None  # shown as what waits for a word
    files = [
        Linked(one.blob, one.name, one.mime, is_image=one.mime.startswith("image/")) for one in row.beside.attachments
    ]
    is_answer = row.kind in ("reply", "block") and bool(row.turn)
    if is_answer and not files:
        return None
    said = "" if is_answer else row.text
    return Item(
        id=f"{BESIDE}{row.id}", kind="notice", at=row.created, blocks=rich(said), text=said, files=files, acts=["copy"]
    )


def merged(items: Iterable[Item], others: Sequence[Item]) -> list[Item]:
    """Items with what was delivered beside them, by time; of the latter those that came after the first item."""
    known = list(items)
    since = known[0].at if known else 0
    return sorted((*known, *(one for one in others if one.at >= since)), key=lambda item: item.at)


def line(connection: Connection, session: str, leaf: str, *, count: int = PAGE) -> tuple[list[Entry], str]:
    """The last entries on the way to `leaf` with some `count` messages, and the entry before them (empty: none).

    Reads backwards from the end, so that a long conversation costs no more than a short one.
    """
    known: dict[str, Entry] = {}
    top = entries.last_seq(connection, session) + 1
    found: list[Entry] = []
    messages = 0
    place = leaf
    while place:
        while place not in known and top > 1:
            bottom = max(1, top - CHUNK)
            chunk = entries.load(connection, session, after=bottom - 1, limit=top - bottom)
            known.update((entry.id, entry) for entry in chunk)
            top = bottom
        entry = known.get(place)
        if entry is None:
            break
        found.append(entry)
        place = entry.parent
        messages += isinstance(entry.payload, UserEntry | AssistantEntry)
        if messages >= count and isinstance(entry.payload, UserEntry | AssistantEntry):
            break
    return found[::-1], place


def cut(text: str) -> str:
    """The beginning of a text that is too long to be shown, with how much was left out."""
    return text if len(text) <= SHOWN else text[:SHOWN] + texts.LEFT_OUT.format(count=len(text) - SHOWN)


def pretty(arguments: str) -> str:
    """The arguments of a call, one to a line."""
    try:
        found: object = json.loads(arguments)
    except ValueError:
        return cut(arguments)
    return cut(json.dumps(found, indent=2, ensure_ascii=False))


def dollars(cost: int | None) -> str:
    """Money of micro-dollars."""
    return texts.NO_PRICE if cost is None else f"${cost / 1e6:.4f}"
