"""Arguments checked against a JSON Schema that came from elsewhere (MCP servers, plug-ins): drafts 4 to 2020-12.

Our own because it is short: the usual library brings four packages and takes longer to import than a turn may cost.
Checked is what schemas of tools use; `format`, `if`, `dependent…`, `contains` and `unevaluated…` are not, nor are
references to other documents. What is not checked here, the server that owns the tool still checks itself.
"""

from __future__ import annotations

import json
import re

import msgspec

from limpet.errors import ArgumentsError
from limpet.toolkit.kinds import Faults

Json = dict[str, object]
_DEEPEST = 64
_MOST = 50_000
"""Nodes of one check: alternatives that refer to themselves would go on for ever. What lies beyond is allowed."""
_LONGEST_MATCHED = 2_000
"""Characters up to which `pattern` is tried: expressions of strangers may take exponential time."""
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}
_SIZES = (
    ("minLength", "maxLength", str, "characters"),
    ("minItems", "maxItems", list, "items"),
    ("minProperties", "maxProperties", dict, "keys"),
)


def check_arguments(name: str, arguments: str, schema: object) -> Json:
    """`arguments` (JSON text) of the tool `name` as an object. Raises `ArgumentsError` that lists every fault."""
    try:
        value: object = json.loads(arguments or "{}", strict=False)
    except ValueError as error:
        raise ArgumentsError(
            f"{name} was not run: its arguments are not complete JSON ({error}); the call was probably cut off.",
            hint="Send the whole call again; write long content in several smaller parts.",
        ) from None
    faults = Faults()
    given = _object(value)
    if given is None:
        faults.expected("arguments", "an object", got=value)
    else:
        Check(schema, faults).node(schema, given, where="")
    if faults or given is None:
        raise ArgumentsError(
            f"{name} was not run, its arguments are wrong:\n{faults}",
            hint="Send the call again as the schema of the tool says.",
        )
    return given


class Check:
    """One check of a value against the schema `root`; every fault goes into `faults` with its place."""

    def __init__(self, root: object, faults: Faults, *, left: list[int] | None = None, depth: int = 0) -> None:
        self._root = root
        self._faults = faults
        self._depth = depth
        self._left = [_MOST] if left is None else left

    def node(self, schema: object, value: object, *, where: str) -> None:
        rules = _object(schema)
        if rules is None:
            if schema is False:
                self._faults.add(where or "arguments", "nothing is allowed here")
            return
        self._depth += 1
        self._left[0] -= 1
        if self._depth <= _DEEPEST and self._left[0] > 0:
            self._all(rules, value, where=where)
        self._depth -= 1

    def _all(self, rules: Json, value: object, *, where: str) -> None:
        spot = where or "arguments"
        if "$ref" in rules:
            self.node(_resolve(self._root, str(rules["$ref"])), value, where=where)
        if not _is_kind(rules, value):
            self._faults.expected(spot, _named(rules["type"]), got=value)
            return
        if "const" in rules and not _same(value, rules["const"]):
            self._faults.expected(spot, json.dumps(rules["const"]), got=value)
        if (options := _list(rules.get("enum"))) and not any(_same(value, option) for option in options):
            self._faults.expected(spot, "one of " + ", ".join(json.dumps(option) for option in options), got=value)
        self._combined(rules, value, where=where)
        self._size(rules, value, spot=spot)
        if isinstance(value, str):
            self._text(rules, value, spot=spot)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self._number(rules, value, spot=spot)
        elif isinstance(value, list):
            self._array(rules, _list(value), where=where)  # pyright: ignore[reportUnknownArgumentType]
        elif (given := _object(value)) is not None:
            self._keys(rules, given, where=where)

    def _combined(self, rules: Json, value: object, *, where: str) -> None:
        spot = where or "arguments"
        for part in _list(rules.get("allOf")):
            self.node(part, value, where=where)
        for key in ("anyOf", "oneOf"):
            options = _list(rules.get(key))
            tried = [self._tried(option, value, where=where) for option in options]
            matches = sum(not faults for faults in tried)
            if options and not matches:
                self._faults.add(spot, f"fits none of the {len(options)} alternatives; of the first: {tried[0]}")
            elif key == "oneOf" and matches > 1:
                self._faults.add(spot, f"fits {matches} alternatives, must fit exactly one")
        if "not" in rules and not self._tried(rules["not"], value, where=where):
            self._faults.add(spot, f"must not be like {json.dumps(rules['not'])}")

    def _tried(self, schema: object, value: object, *, where: str) -> Faults:
        faults = Faults()
        Check(self._root, faults, left=self._left, depth=self._depth).node(schema, value, where=where)
        return faults

    def _size(self, rules: Json, value: object, *, spot: str) -> None:
        for least, most, kind, unit in _SIZES:
            if not isinstance(value, kind):
                continue
            count = len(value)  # pyright: ignore[reportUnknownArgumentType]
            low, high = rules.get(least), rules.get(most)
            if isinstance(low, int) and count < low:
                self._faults.add(spot, f"has {count} {unit}, at least {low} are needed")
            if isinstance(high, int) and count > high:
                self._faults.add(spot, f"has {count} {unit}, at most {high} are allowed")

    def _text(self, rules: Json, value: str, *, spot: str) -> None:
        pattern = rules.get("pattern")
        if isinstance(pattern, str) and not _matches(pattern, value):
            self._faults.expected(spot, f"text like {pattern}", got=value)

    def _number(self, rules: Json, value: int | float, *, spot: str) -> None:
        low, high = _limit(rules, "minimum"), _limit(rules, "maximum")
        above, below = _limit(rules, "exclusiveMinimum"), _limit(rules, "exclusiveMaximum")
        if rules.get("exclusiveMinimum") is True:  # draft 4
            above, low = low, None
        if rules.get("exclusiveMaximum") is True:
            below, high = high, None
        step = _limit(rules, "multipleOf")
        for bad, what in (
            (low is not None and value < low, f"a number of at least {low}"),
            (high is not None and value > high, f"a number of at most {high}"),
            (above is not None and value <= above, f"a number above {above}"),
            (below is not None and value >= below, f"a number below {below}"),
            (step and abs(value / step - round(value / step)) > 1e-9, f"a multiple of {step}"),
        ):
            if bad:
                self._faults.expected(spot, what, got=value)

    def _array(self, rules: Json, value: list[object], *, where: str) -> None:
        items = rules.get("items")
        row = _list(rules.get("prefixItems")) or _list(items)
        rest = rules.get("additionalItems") if isinstance(items, list) else items
        for at, item in enumerate(value):
            self.node(row[at] if at < len(row) else rest, item, where=f"{where}[{at}]")
        if rules.get("uniqueItems") is True:
            texts = [json.dumps(item, sort_keys=True) for item in value]
            if len(set(texts)) < len(texts):
                self._faults.add(where or "arguments", "holds an item twice")

    def _keys(self, rules: Json, value: Json, *, where: str) -> None:
        properties = _object(rules.get("properties")) or {}
        patterns = _object(rules.get("patternProperties")) or {}
        lead = f"{where}." if where else ""
        for name in _list(rules.get("required")):
            if name not in value:
                self._faults.add(f"{lead}{name}", "required argument is missing")
        for name, item in value.items():
            spot = f"{lead}{name}"
            if "propertyNames" in rules:
                self.node(rules["propertyNames"], name, where=spot)
            fitting = [schema for pattern, schema in patterns.items() if _matches(pattern, name)]
            fitting += [properties[name]] if name in properties else []
            for schema in fitting:
                self.node(schema, item, where=spot)
            if not fitting and rules.get("additionalProperties") is False:
                self._faults.add(spot, f"unknown argument (known: {', '.join(properties) or 'none'})")
            elif not fitting:
                self.node(rules.get("additionalProperties"), item, where=spot)


def _object(value: object) -> Json | None:
    return msgspec.convert(value, Json) if isinstance(value, dict) else None


def _list(value: object) -> list[object]:
    return msgspec.convert(value, list[object]) if isinstance(value, list) else []


def _is_kind(rules: Json, value: object) -> bool:
    named = rules.get("type")
    kinds = [named] if isinstance(named, str) else _list(named)
    if not kinds or (value is None and rules.get("nullable") is True):
        return True
    return any(_is_one(str(kind), value) for kind in kinds)


def _is_one(kind: str, value: object) -> bool:
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or isinstance(value, int) or value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _named(kinds: object) -> str:
    names = [kinds] if isinstance(kinds, str) else _list(kinds)
    return " or ".join(str(name) for name in names)


def _same(one: object, other: object) -> bool:
    """Equal as JSON: true is not 1, but 1.0 is."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _limit(rules: Json, key: str) -> float | None:
    value = rules.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _matches(pattern: str, text: str) -> bool:
    """Whether `text` holds the pattern; an expression that Python cannot read forbids nothing."""
    if len(text) > _LONGEST_MATCHED:
        return True
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError):
        return True


def _resolve(root: object, reference: str) -> object:
    """What a reference inside of the schema names; one that leads elsewhere allows everything."""
    if not reference.startswith("#"):
        return True
    found: object = root
    for step in filter(None, reference[1:].split("/")):
        name = step.replace("~1", "/").replace("~0", "~")
        row = _list(found)
        inner = _object(found) or {}
        found = row[int(name)] if name.isdigit() and int(name) < len(row) else inner.get(name, True)
    return found
