"""A session for people and other programs: Markdown, and JSON lines."""

from __future__ import annotations

import time
from collections.abc import Iterable

import msgspec

from limpet.types.codec import encode_payload
from limpet.types.content import Image, Text, Thinking, ToolCall
from limpet.types.entry import AssistantEntry, Compaction, Entry, Note, ToolResultEntry, UserEntry
from limpet.types.message import AssistantMessage, ToolMessage, UserMessage


def plain(message: object) -> str:
    """What a message or a block of one is made of, as text; runtime metadata included."""
    match message:
        case UserMessage(content=content, runtime=runtime):
            return "".join(map(plain, content)) + runtime
        case AssistantMessage(content=content) | ToolMessage(content=content):
            return "".join(map(plain, content))
        case Text(text=text) | Thinking(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return f"{name}{arguments}"
        case _:
            return ""


def markdown(entries: Iterable[Entry]) -> str:
    """The conversation as people saw it: no runtime metadata, no thinking, tool output shortened."""
    parts = [_section(entry) for entry in entries]
    return "\n\n".join(part for part in parts if part) + "\n"


def jsonl(entries: Iterable[Entry]) -> str:
    """One JSON object per line and entry, in order; nothing left out. `erased` is the hash of what stood there."""
    return "".join(msgspec.json.encode(_fields(entry)).decode() + "\n" for entry in entries)


def _fields(entry: Entry) -> dict[str, object]:
    fields: dict[str, object] = {
        "seq": entry.seq,
        "id": entry.id,
        "parent": entry.parent,
        "at": entry.at,
        "turn": entry.turn,
        "trust": entry.trust,
        "payload": msgspec.Raw(encode_payload(entry.payload)),
    }
    return fields | {"erased": entry.erased} if entry.erased else fields


def _section(entry: Entry) -> str:
    match entry.payload:
        case UserEntry(message=message, sender=sender):
            return f"## {sender or 'You'} · {_when(entry.at)}\n\n{_blocks(message.content)}"
        case AssistantEntry(message=message):
            calls = "\n".join(f"- `{call.name}` `{call.arguments}`" for call in message.calls)
            return "\n\n".join(part for part in (f"## Limpet · {_when(entry.at)}", message.text.strip(), calls) if part)
        case ToolResultEntry(name=name, result=result):
            mark = "failed" if result.is_error else "result"
            fence = "````"
            return f"{fence}text\n{name} {mark}: {_short(result.text)}\n{fence}"
        case Compaction(summary=summary):
            return f"## Summary · {_when(entry.at)}\n\n{summary}"
        case Note(text=text, origin=origin):
            return f"> {origin or 'note'}: {_short(text, 400)}".replace("\n", "\n> ")
        case _:
            return ""


def _blocks(content: Iterable[object]) -> str:
    shown = (
        f"![{block.name or 'image'}]({block.blob})" if isinstance(block, Image) else plain(block) for block in content
    )
    return "\n\n".join(part for part in shown if part)


def _short(text: str, limit: int = 2000) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … [{len(text) - limit} characters more]"


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
