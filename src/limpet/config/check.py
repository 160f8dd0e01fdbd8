"""Holds plain data against the schema: which keys nobody knows, which values do not fit."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from limpet.config.schema import Settings
from limpet.config.table import Key, Table, dotted, is_list, is_table


class Fault(msgspec.Struct, frozen=True):
    """A value that does not fit: `message` says what was expected."""

    key: Key
    message: str


def struct_of(kind: Any) -> type[msgspec.Struct] | None:
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else None


def fields_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Type of each field by its name in the file."""
    return {info.encode_name: info.type for info in msgspec.structs.fields(kind)}


def type_of(key: Key) -> Any | None:
    """The type of the setting `key`, None when there is no such setting."""
    kind: Any = Settings
    for part in key:
        if (struct := struct_of(kind)) is not None:
            kind = fields_of(struct).get(part)
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
        else:
            kind = None
        if kind is None or not part:
            return None
    return kind


def unknown_keys(table: Table) -> list[Key]:
    """The keys that stand for no setting, outermost only."""
    return list(_unknown(table, Settings, ()))


def _unknown(table: Table, kind: Any, prefix: Key) -> Iterator[Key]:
    struct = struct_of(kind)
    known = fields_of(struct) if struct else {}
    for name, value in table.items():
        below = known.get(name) if struct else get_args(kind)[1]
        if below is None:
            yield (*prefix, name)
        elif is_table(value) and (struct_of(below) or get_origin(below) is dict):
            yield from _unknown(value, below, (*prefix, name))


def faults(table: Table) -> list[Fault]:
    """Every value that does not fit its setting."""
    return list(_faults(table, Settings, ()))


def _faults(value: object, kind: Any, key: Key) -> Iterator[Fault]:
    struct = struct_of(kind)
    if is_table(value) and (struct or get_origin(kind) is dict):
        known = fields_of(struct) if struct else {}
        for name, below in value.items():
            if not struct:
                yield from _faults(below, get_args(kind)[1], (*key, name))
            elif name in known:
                yield from _faults(below, known[name], (*key, name))
        return
    if is_list(value) and (item := _item_of(kind)) is not None:
        found = [fault for number, one in enumerate(value, 1) for fault in _misfits(one, item, (*key, str(number)))]
        yield from found or _misfit(value, kind, key)
        return
    yield from _misfit(value, kind, key)


def _misfits(value: object, kind: Any, key: Key) -> list[Fault]:
    """What does not fit in one of a list: the settings of a table by name, else itself as a whole."""
    inner = list(_faults(value, kind, key)) if is_table(value) else []
    return inner or list(_misfit(value, kind, key))


def _item_of(kind: Any) -> Any | None:
    """Of what a setting holds a list, where each can be named: tables (`[[policy.rules]]`) and words (`points`)."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    item = get_args(kind)[0] if get_origin(kind) is tuple else None
    return item if struct_of(item) or get_origin(item) is Literal else None


def _misfit(value: object, kind: Any, key: Key) -> Iterator[Fault]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield Fault(key, plain(str(error), kind))


WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "nothing",
    "object": "a table",
    "array": "a list",
}
"""The words of msgspec and of people."""


def plain(message: str, kind: Any = None) -> str:
    """The words of msgspec for people: "Expected `int`, got `str`" is "expected a whole number, got text"."""
    if choices := _choices(kind):
        return f"expected one of {', '.join(choices)}"
    message = message.split(" - at `$")[0]
    if " matching regex " in message and (said := _described(kind)):
        return f"expected {said}"
    for word, meaning in WORDS.items():
        message = message.replace(f"`{word}", f"`{meaning}").replace(f"| {word}", f"or {meaning}")
    message = message.replace("`", "").replace(" >= ", " of at least ").replace(" <= ", " of at most ")
    return message[:1].lower() + message[1:].replace(" > 0.0", " above 0")


def _described(kind: Any) -> str:
    """What the type says of itself in words, where its rule is a pattern."""
    notes = (note for note in get_args(kind)[1:] if isinstance(note, msgspec.Meta))
    return next((note.description for note in notes if note.description), "")


def _choices(kind: Any) -> list[str]:
    """The texts that a setting of this type may be, where they are few."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return [str(word) for option in options if get_origin(option) is Literal for word in get_args(option) if word]


def from_text(key: Key, text: str) -> object:
    """The value that `text` (an argument, an environment variable) stands for at the setting `key`.

    Raises `ValueError` with what was expected; the setting must exist.
    """
    kind = type_of(key)
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if str in options:
        return text
    if struct_of(kind) or get_origin(kind) in (dict, list, tuple):
        raise ValueError("this is a table: set one of its keys")
    try:
        return msgspec.convert(text.strip(), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(plain(str(error), kind)) from None


MOVED = {
    "llm.temperature": "models.purposes.chat.temperature",
    "llm.max_tokens": "models.purposes.chat.max_tokens",
    "llm.thinking": "models.purposes.chat.thinking",
}
"""Settings that have another name now."""


def nearest(key: Key) -> str:
    """The known key that `key` is probably meant to be, as text; empty when none is near."""
    if moved := MOVED.get(dotted(key)):
        return moved
    import difflib  # only for mistakes: 5 ms

    known = [name for name, _ in known_keys(Settings, "")]
    close = difflib.get_close_matches(dotted(key), known, n=1, cutoff=0.7)
    if close:
        return close[0]
    last = {name.split(".")[-1]: name for name in reversed(known)}
    close = difflib.get_close_matches(key[-1], list(last), n=1, cutoff=0.75)
    return last[close[0]] if close else ""


def known_keys(kind: type[msgspec.Struct], prefix: str) -> Iterator[tuple[str, Any]]:
    """Every setting as dotted text with its type; tables of named things show `<name>`."""
    for name, below in fields_of(kind).items():
        if (struct := struct_of(below)) is not None:
            yield from known_keys(struct, f"{prefix}{name}.")
        elif get_origin(below) is dict and (struct := struct_of(get_args(below)[1])) is not None:
            yield from known_keys(struct, f"{prefix}{name}.<name>.")
        else:
            yield prefix + name, below
