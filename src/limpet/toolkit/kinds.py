"""What a parameter may be: its JSON Schema, and turning a received value into it.

Repair is limited to what has one meaning: `"5"` for a number, `"true"` for a flag, a list sent as its JSON text.
"""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct

_SHOWN = 60


class Faults:
    """Every fault found in one call, each with its place."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, where: str, what: str) -> None:
        self._lines.append(f"- {where}: {what}")

    def expected(self, where: str, what: str, *, got: object) -> None:
        self.add(where, f"expected {what}, got {shorten(got)}")

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __str__(self) -> str:
        return "\n".join(self._lines)


def shorten(value: object) -> str:
    """A received value in at most 60 characters."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def describe(kind: object, *, docs: bool) -> dict[str, object]:
    """The JSON Schema of a parameter of type `kind`. Defaults are not told: they would cost bytes in every request."""
    kind, note = _unpack(kind)
    schema = _schema(kind, docs=docs)
    if docs and note:
        schema["description"] = note
    return schema


def convert(kind: object, value: object, *, where: str, faults: Faults) -> object:
    """`value` as `kind`. What does not fit is added to `faults`; the return value is then meaningless."""
    kind, _ = _unpack(kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _convert_union(kind, value, where=where, faults=faults)
    if origin is Literal:
        options = get_args(kind)
        if value not in options:
            faults.expected(where, "one of " + ", ".join(json.dumps(option) for option in options), got=value)
        return value
    if origin in (list, tuple):
        return _convert_list(kind, value, where=where, faults=faults)
    if _is_struct(kind):
        return _convert_struct(kind, value, where=where, faults=faults)
    return _convert_scalar(kind, value, where=where, faults=faults)


def _unpack(kind: object) -> tuple[object, str]:
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        return kind, next((note for note in notes if isinstance(note, str)), "")
    return kind, ""


def _is_struct(kind: object) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _options(kind: object) -> list[object]:
    return [option for option in get_args(kind) if option is not NoneType]


def _schema(kind: object, *, docs: bool) -> dict[str, object]:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        options = _options(kind)
        return (
            _schema(options[0], docs=docs) if len(options) == 1 else {"anyOf": [_schema(o, docs=docs) for o in options]}
        )
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if origin in (list, tuple):
        return {"type": "array", "items": describe(get_args(kind)[0], docs=docs)}
    if _is_struct(kind):
        return _schema_struct(kind, docs=docs)
    names: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
    if kind not in names:
        raise TypeError(f"a tool's parameter cannot be a {kind!r}")
    return {"type": names[kind]}


def _fields(kind: type[Struct]) -> dict[str, tuple[object, bool]]:
    """Name to (type, whether it must be given)."""
    hints = get_type_hints(kind, include_extras=True)
    defaults = kind.__struct_defaults__
    names = kind.__struct_fields__
    optional = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return {name: (hints[name], optional.get(name, NODEFAULT) is NODEFAULT) for name in names}


def _schema_struct(kind: type[Struct], *, docs: bool) -> dict[str, object]:
    fields = _fields(kind)
    return {
        "type": "object",
        "properties": {name: describe(hint, docs=docs) for name, (hint, _) in fields.items()},
        "required": [name for name, (_, needed) in fields.items() if needed],
    }


def _convert_union(kind: object, value: object, *, where: str, faults: Faults) -> object:
    if value is None and NoneType in get_args(kind):
        return None
    first: Faults | None = None
    for option in _options(kind):
        tried = Faults()
        result = convert(option, value, where=where, faults=tried)
        if not tried:
            return result
        first = first or tried
    faults.add(where, str(first).removeprefix(f"- {where}: "))
    return value


def _convert_list(kind: object, value: object, *, where: str, faults: Faults) -> object:
    item = get_args(kind)[0]
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            faults.expected(where, "an array", got=value)
            return value
    if not isinstance(value, list):
        faults.expected(where, "an array", got=value)
        return value
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
    return [convert(item, one, where=f"{where}[{index}]", faults=faults) for index, one in enumerate(items)]


def _convert_struct(kind: type[Struct], value: object, *, where: str, faults: Faults) -> object:
    if not isinstance(value, dict):
        faults.expected(where, "an object", got=value)
        return value
    given: dict[str, object] = {str(key): one for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    fields = _fields(kind)
    for name in given:
        if name not in fields:
            faults.add(f"{where}.{name}", f"unknown argument (known: {', '.join(fields)})")
    values: dict[str, object] = {}
    before = str(faults)
    for name, (hint, needed) in fields.items():
        if name in given and (given[name] is not None or needed):
            values[name] = convert(hint, given[name], where=f"{where}.{name}", faults=faults)
        elif needed:
            faults.add(f"{where}.{name}", "required argument is missing")
    return kind(**values) if str(faults) == before else given


def _convert_scalar(kind: object, value: object, *, where: str, faults: Faults) -> object:
    if kind is str and isinstance(value, str):
        return value
    if kind is bool:
        return _flag(value, where=where, faults=faults)
    if kind is int or kind is float:
        return _number(kind, value, where=where, faults=faults)
    faults.expected(where, "a string", got=value)
    return value


def _flag(value: object, *, where: str, faults: Faults) -> object:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    faults.expected(where, "true or false", got=value)
    return value


def _number(kind: object, value: object, *, where: str, faults: Faults) -> object:
    whole = kind is int
    if isinstance(value, str):
        value = _read_number(value, whole=whole)
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.expected(where, "an integer" if whole else "a number", got=value)
        return value
    if not whole:
        return float(value)
    if isinstance(value, float) and not value.is_integer():
        faults.expected(where, "an integer", got=value)
        return value
    return int(value)


def _read_number(text: str, *, whole: bool) -> object:
    """The number that `text` plainly is, else `text` itself."""
    digits = text.strip().lstrip("+-")
    if not digits.isascii() or len(digits) > 18 or not digits[:1].isdigit():
        return text
    try:
        return int(digits) * (-1 if text.strip()[0] == "-" else 1) if whole else float(text)
    except ValueError:
        return text
