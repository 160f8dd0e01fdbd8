"""Reading JSON Schemas of any draft: references, types that are only meant, parts that hold together."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from limpet.llm.schema import Json, Spoken

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "dict": "object", "list": "array"}
_KNOWN = ("string", "number", "integer", "boolean", "object", "array", "null")
_NAMES: dict[Spoken, re.Pattern[str]] = {
    "anthropic": re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}"),
    "moonshot": re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"),
}


def record(value: object) -> Json | None:
    """`value` as an object, None when it is none."""
    try:
        return msgspec.convert(value, Json)
    except msgspec.ValidationError:
        return None


def array(value: object) -> list[object]:
    """`value` as a list; anything else is an empty one."""
    try:
        return msgspec.convert(value, list[object])
    except msgspec.ValidationError:
        return []


def resolve(root: Json, reference: object) -> Json | None:
    """What a local reference names, None when it names nothing here."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: object = root
    for step in filter(None, reference[1:].split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        inner = record(found)
        if inner is not None:
            found = inner.get(name)
        else:
            steps = array(found)
            found = steps[int(name)] if name.isdigit() and int(name) < len(steps) else None
    return record(found)


def plain_names(names: Iterable[str], dialect: Spoken) -> dict[str, str]:
    """Each property name as the dialect takes it, all different."""
    pattern = _NAMES.get(dialect)
    known = list(names)
    if pattern is None:
        return {name: name for name in known}
    good = {name for name in known if pattern.fullmatch(name)}
    taken = set(good)
    result: dict[str, str] = {}
    for name in known:
        made = name
        if name not in good:
            made = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:56]
            made = made if made[:1].isalpha() or made[:1] == "_" else f"_{made}"
            stem, count = made, 2
            while made in taken:
                made, count = f"{stem}_{count}", count + 1
            taken.add(made)
        result[name] = made
    return result


def merged(parts: Iterable[Json]) -> Json:
    """Schemas that hold together (`allOf`) as one."""
    result: Json = {}
    for part in parts:
        properties = {**(record(result.get("properties")) or {}), **(record(part.get("properties")) or {})}
        required = list(dict.fromkeys([*array(result.get("required")), *array(part.get("required"))]))
        result = {**result, **part}
        if properties:
            result["properties"] = properties
        if required:
            result["required"] = required
    return result


def kinds_of(schema: Json) -> list[str]:
    """The types a schema names or plainly means, empty for any."""
    named = schema.get("type")
    listed = [named] if isinstance(named, str) else array(named)
    kinds = [_TYPES.get(kind.lower(), kind.lower()) for kind in listed if isinstance(kind, str)]
    kinds = [kind for kind in dict.fromkeys(kinds) if kind in _KNOWN]
    if kinds or "type" in schema:
        return kinds
    if record(schema.get("properties")) is not None or "required" in schema:
        return ["object"]
    if "items" in schema or "prefixItems" in schema:
        return ["array"]
    values = [schema["const"]] if "const" in schema else array(schema.get("enum"))
    return list(dict.fromkeys(kind_of(value) for value in values))


def kind_of(value: object) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "array"
