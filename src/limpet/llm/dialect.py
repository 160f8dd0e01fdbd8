"""Models that write their reasoning or their calls as text: a filter over streamed text, for profiles that say so.

Nothing of reasoning or of a call's markup leaves the filter as text, wherever its tags are split. Fenced code and
inline code stay as they are. A call of a tool that was not offered is plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import msgspec

from limpet.llm.arguments import CUT_OFF
from limpet.types.tool import ToolSpec


class Shown(NamedTuple):
    text: str


class Thought(NamedTuple):
    text: str


class Written(NamedTuple):
    """A call written as text. `arguments` is what stood there, not checked yet."""

    name: str
    arguments: str
    fault: str = ""


class Recalled(NamedTuple):
    """What was shown so far was reasoning: its end tag came without a beginning."""


Piece = Shown | Thought | Written | Recalled

_THINK = ("<think>", "<thinking>", "<thought>", "<reasoning>")
_UNTHINK = ("</think>", "</thinking>", "</thought>", "</reasoning>")
_FINAL, _UNFINAL = "<final>", "</final>"
BLOCKS: dict[str, tuple[tuple[str, str], ...]] = {
    "minimax": (("<minimax:tool_call>", "</minimax:tool_call>"),),
    "invoke": (("<function_calls>", "</function_calls>"),),
    "hermes": (("<tool_call>", "</tool_call>"),),
    "mistral": (("[TOOL_CALLS]", ""),),
}
"""Opening and closing mark of a block of calls by dialect; `json` (the whole answer is a call) has no marks."""
_INVOKE = re.compile(r'<invoke\s+name="([^"]*)"\s*>(.*?)</invoke>', re.S)
_PARAMETER = re.compile(r'<parameter\s+name="([^"]*)"[^>]*>(.*?)</parameter>', re.S)
_OPEN_INVOKE = re.compile(r'<invoke\s+name="([^"]*)"|"name"\s*:\s*"([^"]*)"')
_MAYBE_CALL = re.compile(r'[\[\s]*\{\s*"(?:name|arguments|parameters|function|type|id)"')


class TextFilter:
    """Feed it text, and act on the pieces it gives; `finish` gives the rest."""

    def __init__(self, *, think: bool, dialects: Iterable[str], tools: Iterable[ToolSpec]) -> None:
        self._think = think
        self._tools = {tool.name: tool for tool in tools}
        dialects = tuple(dialects) if self._tools else ()
        self._whole = "json" in dialects
        self._blocks = dict(pair for name in dialects for pair in BLOCKS.get(name, ()))
        tags = [*self._blocks, *((*_THINK, *_UNTHINK, _FINAL, _UNFINAL) if think else ())]
        self._tags = tuple(tags)
        self._find = _finder(self._tags)
        self._buffer = ""
        self._mode = ""  # closing mark of the block, or "think", or "" for plain text
        self._opening = ""
        self._line = ""
        self._fence = ""
        self._blank = True

    def feed(self, text: str) -> list[Piece]:
        self._buffer += text
        out: list[Piece] = []
        if self._whole and self._holds_call():
            return out
        while self._step(out):
            pass
        return out

    def finish(self) -> list[Piece]:
        out: list[Piece] = []
        if self._whole and self._blank and (calls := self._json_calls(self._buffer)):
            self._buffer = ""
            return list(calls)
        self._whole = False
        while self._step(out):
            pass
        rest, self._buffer = self._buffer, ""
        if self._mode == "think":
            out.append(Thought(rest))
        elif self._opening:
            out.extend(self._unclosed(rest))
        else:
            self._show(rest, out)
        return [piece for piece in out if not isinstance(piece, Shown | Thought) or piece.text]

    def _holds_call(self) -> bool:
        """Whether the whole text so far may still be nothing but a call in JSON."""
        head = self._buffer.lstrip()
        if self._blank and (not head or (head[0] in "{[" and (len(head) < 24 or _MAYBE_CALL.match(head)))):
            return True
        if self._blank and self._think and any(tag.startswith(head[: len(tag)]) for tag in _THINK):
            return False
        self._whole = self._blank and self._mode == "think"
        return False

    def _step(self, out: list[Piece]) -> bool:
        """Work on the buffer up to the next mark; whether there may be more to do."""
        if self._mode == "think":
            return self._thinking(out)
        if self._opening:
            return self._block(out)
        match = self._find.search(self._buffer) if self._find else None
        if match is None:
            keep = _partial(self._buffer, self._tags)
            cut = len(self._buffer) - keep
            self._show(self._buffer[:cut], out)
            self._buffer = self._buffer[cut:]
            return False
        before, tag = self._buffer[: match.start()], match[0]
        self._buffer = self._buffer[match.end() :]
        self._show(before, out)
        if self._fence or self._line.count("`") % 2 or _is_fence(self._line):
            self._show(tag, out)
        elif tag in self._blocks:
            self._opening, self._mode = tag, self._blocks[tag]
        elif tag in _THINK:
            self._mode = "think"
        elif tag in _UNTHINK:
            out.append(Recalled())
            self._blank = True
            self._line = ""
        return True

    def _thinking(self, out: list[Piece]) -> bool:
        ends = (*_UNTHINK, _FINAL)
        found = (
            min((at, end) for end in ends if (at := self._buffer.find(end)) >= 0)
            if any(end in self._buffer for end in ends)
            else None
        )
        if found is None:
            cut = len(self._buffer) - _partial(self._buffer, ends)
            if cut:
                out.append(Thought(self._buffer[:cut]))
                self._buffer = self._buffer[cut:]
            return False
        at, end = found
        if at:
            out.append(Thought(self._buffer[:at]))
        self._buffer = self._buffer[at + len(end) :]
        self._mode = ""
        return not (self._whole and self._holds_call())

    def _block(self, out: list[Piece]) -> bool:
        if not self._mode:
            return False  # ends with the stream
        at = self._buffer.find(self._mode)
        if at < 0:
            return False
        body, opening, closing = self._buffer[:at], self._opening, self._mode
        self._buffer = self._buffer[at + len(closing) :]
        self._opening = self._mode = ""
        calls = self._calls(body)
        if calls:
            out.extend(calls)
        else:
            self._show(opening + body + closing, out)
        return True

    def _unclosed(self, body: str) -> list[Piece]:
        opening, closing = self._opening, self._mode
        self._opening = self._mode = ""
        if not closing:
            return list(self._calls(body)) or [Shown(opening + body)]
        named = _OPEN_INVOKE.search(body)
        name = (named[1] or named[2]) if named else ""
        if opening != "<function_calls>" and (calls := self._json_calls(body)):
            return list(calls)  # only the closing mark is missing
        return [Written(name, "", CUT_OFF)] if name in self._tools else [Shown(opening + body)]

    def _calls(self, body: str) -> list[Written]:
        """The calls in a block; none when one of them is not of an offered tool."""
        invokes = _INVOKE.findall(body)
        if not invokes:
            return self._json_calls(body)
        if any(name not in self._tools for name, _ in invokes):
            return []
        return [Written(name, self._typed(name, _PARAMETER.findall(inside))) for name, inside in invokes]

    def _typed(self, name: str, parameters: list[tuple[str, str]]) -> str:
        """Parameters as JSON: texts where the schema says text (or nothing), else what they say in JSON."""
        properties = _fields(_fields(_decoded(bytes(self._tools[name].parameters))).get("properties"))
        values: dict[str, object] = {}
        for key, raw in parameters:
            text = html.unescape(raw.strip("\n"))
            kind = _fields(properties.get(key)).get("type", "string")
            value = text if kind == "string" else _decoded(text)
            values[key] = text if value is None and text.strip() != "null" else value
        return msgspec.json.encode(values).decode()

    def _json_calls(self, body: str) -> list[Written]:
        value = _decoded(body)
        items = msgspec.convert(value, list[object]) if isinstance(value, list) else [value]
        calls = [self._json_call(item) for item in items]
        return [call for call in calls if call] if calls and all(calls) else []

    def _json_call(self, item: object) -> Written | None:
        fields = _fields(item)
        if inner := fields.get("function"):
            return self._json_call(inner)
        name = fields.get("name")
        arguments = fields.get("arguments", fields.get("parameters", {}))
        if not isinstance(name, str) or name not in self._tools or not isinstance(arguments, dict | str):
            return None
        return Written(name, arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode())

    def _show(self, text: str, out: list[Piece]) -> None:
        if self._blank:
            text = text.lstrip("\n") if self._think else text
            self._blank = not text.strip()
        if not text:
            return
        out.append(Shown(text))
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if mark := _is_fence(line):
                if not self._fence:
                    self._fence = mark
                elif mark.startswith(self._fence) and line.strip() == mark:
                    self._fence = ""


def _is_fence(line: str) -> str:
    """The mark of a line that begins or ends fenced code, else nothing."""
    match = re.match(r" {0,3}(`{3,}|~{3,})", line)
    return match[1] if match else ""


def _finder(tags: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(re.escape(tag) for tag in tags)) if tags else None


def _partial(text: str, tags: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the beginning of one of `tags`."""
    beginnings, longest = _beginnings(tags)
    for size in range(min(longest, len(text)), 0, -1):
        if text[-size:] in beginnings:
            return size
    return 0


@cache
def _beginnings(tags: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """All proper beginnings of `tags`, and the length of the longest."""
    return frozenset(tag[:size] for tag in tags for size in range(1, len(tag))), max(map(len, tags), default=1) - 1


def _fields(value: object) -> dict[str, object]:
    """`value` as an object, an empty one when it is none."""
    return msgspec.convert(value, dict[str, object]) if isinstance(value, dict) else {}


def _decoded(text: str | bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
