"""What a model wants done with the memory, out of whatever shape it says that in (case C30)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeGuard

import msgspec
from msgspec import Raw, Struct

from limpet.memory.entries import entries_of
from limpet.types.tool import ToolSpec

NAME = "save_memory"
_TEXT: dict[str, object] = {"type": "string"}
_TEXTS: dict[str, object] = {"type": "array", "items": _TEXT}
_DROPS = ("drop", "remove", "delete", "duplicates")
_CHANGES = ("replace", "update", "change")
_PAST = ("history", "history_entry", "summary")
_LINE = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.+)$", re.MULTILINE)


class Wish(Struct, frozen=True):
    """A line to be remembered; `instead` is the id of the entry that it replaces, `sources` those it was made of."""

    text: str
    instead: str = ""
    sources: tuple[str, ...] = ()


class Wishes(Struct, frozen=True):
    """All that is to be done; `drop` are ids."""

    lines: tuple[Wish, ...] = ()
    drop: tuple[str, ...] = ()
    history: str = ""


def spec() -> ToolSpec:
    """The tool by which a model is to say it."""
    line = _object(("text",), text=_TEXT, **{"from": _TEXTS})
    changed = _object(("id", "text"), id=_TEXT, text=_TEXT, **{"from": _TEXTS})
    schema = _object(
        ("add", "replace", "drop", "history"),
        add={"type": "array", "items": line},
        replace={"type": "array", "items": changed},
        drop=_TEXTS,
        history=_TEXT,
    )
    return ToolSpec(NAME, "Save what should last.", Raw(msgspec.json.encode(schema)))


def _object(required: tuple[str, ...], **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": required}


def from_call(arguments: str) -> Wishes | None:
    """The wishes in the arguments of a call, JSON text of an object with whatever in it; None when it is none."""
    try:
        found: object = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return None
    return _wishes(found) if _is_table(found) else None


def from_text(text: str) -> Wishes | None:
    """The wishes in an answer without a call: a JSON object in it, else its list items; None when it has neither."""
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        try:
            found: object = msgspec.json.decode(text[start : end + 1])
        except (msgspec.DecodeError, RecursionError):
            found = None
        if _is_table(found):
            return _wishes(found)
    lines = tuple(Wish(one.strip()) for one in _LINE.findall(text))
    return Wishes(lines) if lines else None


def _wishes(table: dict[str, object]) -> Wishes:
    lines: list[Wish] = []
    drop: list[str] = []
    past: list[str] = []
    for key, value in table.items():
        name = key.casefold()
        if name in _DROPS:
            drop += _texts(value)
        elif name in _PAST:
            past += _texts(value)
        else:
            lines += _lines(value, replaces=name in _CHANGES)
    return Wishes(tuple(lines), tuple(drop), " ".join(" ".join(past).split()))


def _lines(value: object, *, replaces: bool) -> Iterator[Wish]:
    """The lines anywhere inside of `value`."""
    if isinstance(value, str):
        yield from (Wish(one.text) for one in entries_of(value, ""))
    elif _is_list(value):
        for item in value:
            yield from _lines(item, replaces=replaces)
    elif _is_table(value):
        text = next((one for name in ("text", "content", "fact") if isinstance(one := value.get(name), str)), "")
        if text:
            sources = tuple(_texts(value.get("from", value.get("sources"))))
            instead = value.get("id") if replaces or "from" in value else ""
            yield Wish(text, instead if isinstance(instead, str) else "", sources)
        else:
            for item in value.values():
                yield from _lines(item, replaces=replaces)


def _texts(value: object) -> list[str]:
    """The texts anywhere inside of `value`."""
    if isinstance(value, str):
        return [value]
    inner = value if _is_list(value) else list(value.values()) if _is_table(value) else []
    return [text for item in inner for text in _texts(item)]


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
