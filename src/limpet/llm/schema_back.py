"""Arguments of a call back under the names of the tool's own schema, without the nulls that strict mode forces."""

from __future__ import annotations

import msgspec

from limpet.llm.schema import Json, Spoken
from limpet.llm.schema_read import array, kinds_of, merged, plain_names, record, resolve


def put_back(arguments: str, parameters: bytes, dialect: Spoken) -> str:
    """`arguments` as JSON text; as they are when they cannot be read."""
    try:
        value: object = msgspec.json.decode(arguments)
        root = msgspec.json.decode(parameters, type=Json)
    except msgspec.DecodeError:
        return arguments
    back = _back(value, root, root=root, dialect=dialect)
    return arguments if back == value else msgspec.json.encode(back).decode()


def _back(value: object, schema: Json, *, root: Json, dialect: Spoken) -> object:
    schema = _flat(schema, root)
    if isinstance(value, list):
        inner = record(schema.get("items"))
        if inner is None:
            return value  # pyright: ignore[reportUnknownVariableType]
        return [_back(item, inner, root=root, dialect=dialect) for item in array(value)]  # pyright: ignore[reportUnknownArgumentType]
    given = record(value)
    if given is None:
        return value
    properties = record(schema.get("properties")) or {}
    own = {made: name for name, made in plain_names(properties, dialect).items()}
    needed = array(schema.get("required"))
    result: Json = {}
    for key, item in given.items():
        name = key if key in properties else own.get(key, key)
        inner = record(properties.get(name)) or {}
        unasked = item is None and dialect == "strict" and name in properties and name not in needed
        if unasked and _refuses_null(inner, root):
            continue
        result[name] = _back(item, inner, root=root, dialect=dialect)
    return result


def _flat(schema: Json, root: Json) -> Json:
    """The schema with its references followed and its parts and alternatives as one."""
    for _ in range(8):
        parts = [record(part) or {} for key in ("allOf", "anyOf", "oneOf") for part in array(schema.get(key))]
        target = resolve(root, schema.get("$ref"))
        if target is not None:
            parts.append(target)
        if not parts:
            break
        rest = {key: value for key, value in schema.items() if key not in ("allOf", "anyOf", "oneOf", "$ref")}
        schema = merged([*parts, rest])
    return schema


def _refuses_null(schema: Json, root: Json) -> bool:
    options = [record(part) or {} for key in ("anyOf", "oneOf") for part in array(schema.get(key))]
    target = resolve(root, schema.get("$ref"))
    if target is not None:
        options.append(target)
    if options:
        return all(_refuses_null(option, root) for option in options)
    kinds = kinds_of(schema)
    return bool(kinds) and "null" not in kinds and schema.get("nullable") is not True
