"""A session in the JSON lines tree format of OpenClaw and Pi (version 3): a header, then entries by id and parent.

What only Limpet knows (snapshots, prunes, flushes …) comes as `custom` entries, which these programs keep and leave
out of what a model sees. There the newest entry is the leaf, so a move of ours is one that hangs where it went.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Raw

from limpet.store.sessions import SessionRow
from limpet.types.codec import encode_payload
from limpet.types.content import Image, Opaque, Text, Thinking, ToolCall
from limpet.types.entry import (
    AssistantEntry,
    Compaction,
    Entry,
    Label,
    Leaf,
    ModelChange,
    Note,
    ToolResultEntry,
    UserEntry,
)
from limpet.types.message import AssistantMessage
from limpet.types.usage import Usage

VERSION = 3
Fields = dict[str, object]
ReadBlob = Callable[[str], bytes]
"""The bytes of a blob. Raises `FileNotFoundError`."""

_APIS = {
    "openai_chat": "openai-completions",
    "openai_responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "google-generative-ai",
    "bedrock": "bedrock-converse-stream",
}
_STOPS = {"tool_calls": "toolUse", "length": "length", "cancelled": "aborted", "error": "error"}


def openclaw(session: SessionRow, entries: Sequence[Entry], *, folder: str, read: ReadBlob) -> str:
    """The lines of a session that worked in `folder`; `read` gives the bytes of pictures."""
    header: Fields = {
        "type": "session",
        "version": VERSION,
        "id": session.id,
        "timestamp": _iso(session.created),
        "cwd": folder,
    }
    if session.parent:
        header["parentSession"] = session.parent
    answers = {entry.id: entry.payload.message for entry in entries if isinstance(entry.payload, AssistantEntry)}
    lines = [header, *(_line(entry, answers, read) for entry in entries)]
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in lines)


def _line(entry: Entry, answers: Mapping[str, AssistantMessage], read: ReadBlob) -> Fields:
    parent = entry.payload.target if isinstance(entry.payload, Leaf) else entry.parent
    kind, fields = _content(entry, answers, read)
    return {"type": kind, "id": entry.id, "parentId": parent or None, "timestamp": _iso(entry.at), **fields}


def _content(entry: Entry, answers: Mapping[str, AssistantMessage], read: ReadBlob) -> tuple[str, Fields]:
    match entry.payload:
        case UserEntry(message=message):
            content = [*_blocks(message.content, read), *([_text(message.runtime)] if message.runtime else [])]
            return "message", {"message": {"role": "user", "content": content, "timestamp": entry.at}}
        case AssistantEntry(message=message):
            return "message", {"message": _answer(entry, message)}
        case ToolResultEntry():
            return "message", {"message": _result(entry, answers, read)}
        case Compaction(summary=summary, first_kept=kept) if kept:
            files = {"readFiles": entry.payload.read, "modifiedFiles": entry.payload.changed}
            tokens = entry.payload.tokens_before
            return "compaction", {
                "summary": summary, "firstKeptEntryId": kept, "tokensBefore": tokens, "details": files
            }  # fmt: skip
        case ModelChange(model=model):
            provider, _, name = model.partition("/")
            return "model_change", {"provider": provider, "modelId": name}
        case Label(target=target, label=label):
            return "label", {"targetId": target, "label": label}
        case Note(text=text, origin=origin):
            return "custom_message", {"customType": f"limpet:{origin or 'note'}", "content": text, "display": False}
        case payload:
            data = Raw(encode_payload(payload))
            kind = "opaque" if isinstance(payload, Opaque) else str(payload.__struct_config__.tag)
            return "custom", {"customType": f"limpet:{kind}", "data": data}


def _answer(entry: Entry, message: AssistantMessage) -> Fields:
    content: list[Fields] = []
    calls = 0
    for block in message.content:
        match block:
            case Text(text=text):
                content.append(_text(text))
            case Thinking(text=text, signature=signature):
                content.append({"type": "thinking", "thinking": text, "thinkingSignature": signature})
            case ToolCall():
                name = block.id or f"{entry.id}.{calls}"
                calls += 1
                content.append({"type": "toolCall", "id": name, "name": block.name, "arguments": Raw(_object(block))})
            case Opaque():
                pass
    return {
        "role": "assistant",
        "content": content,
        "api": _APIS.get(message.producer.wire, message.producer.wire),
        "provider": message.producer.provider,
        "model": message.producer.model,
        "usage": _usage(message.usage),
        "stopReason": _STOPS.get(message.stop, "stop"),
        "timestamp": entry.at,
    }


def _result(entry: Entry, answers: Mapping[str, AssistantMessage], read: ReadBlob) -> Fields:
    result = entry.payload
    assert isinstance(result, ToolResultEntry)
    calls = answers[result.assistant].calls if result.assistant in answers else ()
    call = calls[result.index] if result.index < len(calls) else None
    return {
        "role": "toolResult",
        "toolCallId": (call.id if call else "") or f"{result.assistant}.{result.index}",
        "toolName": result.name,
        "content": _blocks(result.result.content, read),
        "isError": result.result.is_error,
        "timestamp": entry.at,
    }


def _blocks(blocks: Iterable[object], read: ReadBlob) -> list[Fields]:
    found: list[Fields] = []
    for block in blocks:
        match block:
            case Text(text=text):
                found.append(_text(text))
            case Image():
                found.append(_image(block, read))
            case _:
                pass
    return found


def _image(image: Image, read: ReadBlob) -> Fields:
    try:
        data = base64.b64encode(read(image.blob)).decode()
    except FileNotFoundError:
        return _text(f"[image: {image.name or image.mime}, its file is missing]")
    return {"type": "image", "data": data, "mimeType": image.mime}


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _usage(usage: Usage) -> Fields:
    """Money in dollars; only the sum is known."""
    total = (usage.cost or 0) / 1e6
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": total},
    }


def _object(call: ToolCall) -> bytes:
    """The arguments as the JSON object they are; empty when a newer Limpet stored something else."""
    try:
        msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return b"{}"
    return call.arguments.encode()


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"
