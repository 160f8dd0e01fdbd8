"""Plain TOML data: nested tables, walked by dotted keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

Table = dict[str, object]
Key = tuple[str, ...]


def is_table(value: object) -> TypeGuard[Table]:
    """Keys of TOML tables are always text."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether `value` is a TOML array."""
    return isinstance(value, list)


def dotted(key: Key) -> str:
    """The key as people write it; parts that hold a dot are quoted."""
    return ".".join(f'"{part}"' if "." in part else part for part in key)


def split_key(text: str) -> Key:
    """The parts of `providers."my.server".api_key`. Empty parts stay empty, for the caller to refuse."""
    parts: list[str] = [""]
    quoted = False
    for character in text.strip():
        if character == '"':
            quoted = not quoted
        elif character == "." and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def leaves(table: Table, prefix: Key = ()) -> Iterator[tuple[Key, object]]:
    """Every value that is not itself a table, with its key."""
    for name, value in table.items():
        if is_table(value):
            yield from leaves(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def look_up(table: Table, key: Key) -> object | None:
    """The value at `key`, None when there is none (TOML knows no null)."""
    value: object = table
    for part in key:
        if not is_table(value) or part not in value:
            return None
        value = value[part]
    return value


def put(table: Table, key: Key, value: object) -> Table:
    """A copy of `table` with `value` at `key`. What stands in the way and is no table is replaced."""
    copy = dict(table)
    if len(key) == 1:
        copy[key[0]] = value
        return copy
    below = copy.get(key[0])
    copy[key[0]] = put(below if is_table(below) else {}, key[1:], value)
    return copy
