"""The script of a fake that a person starts: it answers with text, and lists files when it is asked to and can."""

from __future__ import annotations

import re

from limpet.testing.fakes.script import Call, Reply, Seen
from limpet.testing.fakes.shape import fields, items

_LISTING = re.compile(r"\b(?:list|show|which|what)\b.*\bfiles?\b", re.I | re.S)
_RESULTS = ("toolResult", "functionResponse")


def converse(seen: Seen) -> Reply:
    """The reply to any request, of any wire."""
    body = seen.body or {}
    listed = body.get("messages") or body.get("input") or body.get("contents") or ()
    messages = [fields(item, "message") for item in items(listed, "messages")]
    results = _results(messages)
    if results:
        return Reply(text=("There you are:\n", *_lines(results)))
    asked = _text(messages[-1]) if messages else ""
    forbidden = body.get("tool_choice") is not None or ("contents" in body and "toolConfig" in body)
    if _LISTING.search(asked) and "list_dir" in _names(body) and not forbidden:
        return Reply(text=("Let me look.",), calls=(Call("list_dir", '{"path": "."}'),))
    line = asked.strip().splitlines()[0][:200] if asked.strip() else ""
    return Reply(text=("Hello, ", "I am a fake model. ", f"You said: {line}"))


def _results(messages: list[dict[str, object]]) -> str:
    """The tool results that the newest messages bring, empty when there are none."""
    found: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "tool" or message.get("type") == "function_call_output":
            found.insert(0, _text(message))
            continue
        for listed in (message.get("content"), message.get("parts")):
            for item in items(listed, "content") if isinstance(listed, list) else ():  # pyright: ignore[reportUnknownArgumentType]
                block = fields(item, "block")
                if block.get("type") == "tool_result" or any(key in block for key in _RESULTS):
                    found.append(_text(block))
        break
    return "\n".join(found)


def _text(value: object) -> str:
    """The texts anywhere inside of a message."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, (_text(item) for item in items(value, "list"))))  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(value, dict):
        return ""
    found = fields(value, "message")  # pyright: ignore[reportUnknownArgumentType]
    keys = ("text", "content", "parts", "output", "response", *_RESULTS)
    return "\n".join(filter(None, (_text(found[key]) for key in keys if key in found)))


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.splitlines()] or ["(nothing)"]


def _names(value: object) -> set[str]:
    """The names of the tools on offer, wherever they stand."""
    found: set[str] = set()
    if isinstance(value, list):
        for item in items(value, "tools"):  # pyright: ignore[reportUnknownArgumentType]
            found |= _names(item)
    elif isinstance(value, dict):
        known = fields(value, "tool")  # pyright: ignore[reportUnknownArgumentType]
        found |= {str(known["name"])} if isinstance(known.get("name"), str) else set()
        for key in ("tools", "toolConfig", "toolSpec", "function", "functionDeclarations"):
            found |= _names(known.get(key))
    return found
