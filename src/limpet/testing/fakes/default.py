"""The script of a fake that a person starts: it answers with text, and lists files when it is asked to and can."""

from __future__ import annotations

import re

from limpet.testing.fakes.script import Call, Reply, Seen
from limpet.testing.fakes.shape import fields, items

_LISTING = re.compile(r"\b(?:list|show|which|what)\b.*\bfiles?\b", re.I | re.S)


def converse(seen: Seen) -> Reply:
    """The reply to any request, of either wire."""
    body = seen.body or {}
    messages = [fields(item, "message") for item in items(body.get("messages", []), "messages")]
    results = _results(messages)
    if results:
        return Reply(text=("There you are:\n", *_lines(results)))
    asked = _text(messages[-1].get("content")) if messages else ""
    offered = {_tool_name(tool) for tool in items(body.get("tools", []), "tools")}
    if _LISTING.search(asked) and "list_dir" in offered and body.get("tool_choice") is None:
        return Reply(text=("Let me look.",), calls=(Call("list_dir", '{"path": "."}'),))
    line = asked.strip().splitlines()[0][:200] if asked.strip() else ""
    return Reply(text=("Hello, ", "I am a fake model. ", f"You said: {line}"))


def _results(messages: list[dict[str, object]]) -> str:
    """The tool results that the newest messages bring, empty when there are none."""
    found: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "tool":
            found.insert(0, _text(message.get("content")))
            continue
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, list):
            blocks = [fields(item, "block") for item in items(content, "content")]  # pyright: ignore[reportUnknownArgumentType]
            found = [_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"] + found
        break
    return "\n".join(found)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = [fields(item, "block") for item in items(content, "content")]  # pyright: ignore[reportUnknownArgumentType]
    return "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.splitlines()] or ["(nothing)"]


def _tool_name(tool: object) -> str:
    found = fields(tool, "tool")
    inner = fields(found.get("function", {}), "function")
    return str(found.get("name") or inner.get("name") or "")
