"""Which part of JSON Schema each service takes for the parameters of a tool."""

from __future__ import annotations

import re
from typing import Literal

from limpet.testing.fakes.shape import fields, items, need

Dialect = Literal["openai", "strict", "anthropic", "gemini", "moonshot"]
_GEMINI = frozenset(
    [
        *("type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"),
        *("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength", "pattern", "minimum"),
        *("maximum", "propertyOrdering"),
    ]
)
_STRICT = frozenset(
    [
        *("type", "description", "enum", "const", "anyOf", "$ref", "$defs", "definitions", "items", "properties"),
        *("required", "additionalProperties", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "title"),
        *("exclusiveMaximum", "multipleOf", "minItems", "maxItems", "minLength", "maxLength"),
    ]
)
_KEYS = {
    "anthropic": r"[a-zA-Z0-9_.-]{1,64}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    "moonshot": r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}",
}
_KINDS = ("string", "number", "integer", "boolean", "object", "array", "null")


def check_schema(value: object, where: str, *, dialect: Dialect) -> None:
    """Raises `Refused` for what the service of `dialect` does not take."""
    root = fields(value, where)
    need(root.get("type") == "object", f"{where}: schema must be of type object")
    for key in ("anyOf", "oneOf", "allOf", "enum", "not"):
        need(key not in root, f"{where}: {key} is not allowed at the top level")
    _node(root, where, dialect=dialect, root=root)


def _node(schema: dict[str, object], where: str, *, dialect: Dialect, root: dict[str, object]) -> None:
    if "$ref" in schema:
        _reference(schema, where, dialect=dialect, root=root)
        return
    known = {"gemini": _GEMINI, "strict": _STRICT}.get(dialect)
    for key in schema if known is not None else ():
        need(
            key in (known or ()), f'Invalid JSON payload received. Unknown name "{key}" at {where}: Cannot find field.'
        )
    options = items(schema.get("anyOf", []), f"{where}.anyOf")
    for at, option in enumerate(options):
        _node(fields(option, f"{where}.anyOf[{at}]"), f"{where}.anyOf[{at}]", dialect=dialect, root=root)
    if options:
        need(dialect != "gemini" or len(schema) == 1, f"{where}: any_of must be the only field set")
        need(dialect != "moonshot" or "type" not in schema, f"{where}: type should be defined in anyOf items")
    else:
        _type(schema, where, dialect=dialect)
    _object(schema, where, dialect=dialect, root=root)
    if schema.get("type") == "array":
        need("items" in schema, f"{where}.items: missing field")
    if "items" in schema:
        _node(fields(schema["items"], f"{where}.items"), f"{where}.items", dialect=dialect, root=root)
    for name, inner in fields(schema.get("$defs", {}), f"{where}.$defs").items():
        _node(fields(inner, name), f"{where}.$defs.{name}", dialect=dialect, root=root)


def _type(schema: dict[str, object], where: str, *, dialect: Dialect) -> None:
    kind = schema.get("type")
    if dialect in ("gemini", "moonshot", "strict"):
        need(kind or "const" in schema, f"{where}.type: must be specified")
    if dialect in ("gemini", "moonshot"):
        need(kind is None or isinstance(kind, str), f"{where}.type: must be one type")
    need(not isinstance(kind, str) or kind in _KINDS, f"{where}.type: {kind!r} is unknown")
    if dialect == "gemini":
        need(kind != "null", f"{where}.type: unknown")
        values = items(schema.get("enum", []), f"{where}.enum")
        need(all(isinstance(value, str) and value for value in values), f"{where}.enum: only texts that are not empty")
        need(not values or kind == "string", f"{where}.enum: only allowed for STRING type")


def _object(schema: dict[str, object], where: str, *, dialect: Dialect, root: dict[str, object]) -> None:
    properties = fields(schema.get("properties", {}), f"{where}.properties")
    required = items(schema.get("required", []), f"{where}.required")
    kind = schema.get("type")
    if kind == "object" and dialect in ("openai", "strict"):
        need("properties" in schema, f"{where}: object schema missing properties")
    if dialect == "gemini":
        need(properties or "properties" not in schema, f"{where}.properties: should be non-empty for OBJECT type")
    for name, inner in properties.items():
        need(re.fullmatch(_KEYS.get(dialect, ".*"), name), f"{where}.properties: {name!r} does not match the pattern")
        spot = f"{where}.properties.{name}"
        if dialect == "openai" and inner == {}:
            continue
        _node(fields(inner, spot), spot, dialect=dialect, root=root)
    for name in required:
        need(name in properties, f"{where}.required: {name!r} is no property")
    if dialect == "strict" and (kind == "object" or (isinstance(kind, list) and "object" in kind)):
        need(schema.get("additionalProperties") is False, f"{where}: 'additionalProperties' must be false")
        need(set(required) == set(properties), f"{where}: 'required' must include every key in properties")


def _reference(schema: dict[str, object], where: str, *, dialect: Dialect, root: dict[str, object]) -> None:
    name = str(schema["$ref"])
    need(dialect != "gemini", f'Unknown name "$ref" at {where}: Cannot find field.')
    need(name.startswith("#/$defs/") or dialect != "moonshot", f"{where}: references must start with #/$defs/")
    need(dialect not in ("moonshot", "strict") or len(schema) == 1, f"{where}: nothing may stand beside $ref")
    group, _, key = name.removeprefix("#/").partition("/")
    need(key in fields(root.get(group, {}), where), f"{where}: reference can not be resolved: {name}")
