"""One schema down to one dialect: a walk that keeps what the dialect takes and says the rest in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from limpet.llm.schema import Json, Spoken
from limpet.llm.schema_read import array, kind_of, kinds_of, merged, plain_names, record, resolve

REPEATS = 2
"""How often a reference is followed inside of itself where it cannot stay a reference."""
_BUDGET = 3_000
_DEFS = re.compile(r"#/(?:\$defs|definitions)/[^/]+")
_UNIONS = ("anyOf", "oneOf")
_STRUCTURE = frozenset(
    [
        *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
        *("enum", "const", "nullable", "description", "prefixItems", "additionalProperties"),
    ]
)
_SILENT = frozenset(["$schema", "$id", "$comment", "$anchor", "title", "deprecated", "readOnly", "writeOnly"])
_BOUNDS = frozenset(["minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format"])
_MORE = frozenset(["exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
_TAKES: dict[Spoken, frozenset[str] | None] = {
    "openai": None,
    "anthropic": None,
    "strict": _BOUNDS | _MORE,
    "moonshot": _BOUNDS | _MORE | {"default"},
    "gemini": _BOUNDS | {"minProperties", "maxProperties"},
}
_FORMATS = {"string": ("date-time", "enum"), "integer": ("int32", "int64"), "number": ("float", "double")}
_WORDS = {
    "additionalProperties": "other keys",
    "propertyNames": "keys",
    "patternProperties": "keys by pattern",
    "const": "always",
    "enum": "one of",
    "not": "must not match",
    "anyOf": "matches one of",
    "oneOf": "matches exactly one of",
}


class Hopeless(Exception):
    """No form of this schema can be told to any service; the message says why."""


class NotStrict(Exception):
    """The schema allows what strict mode cannot say: keys or values of any kind."""


class Walk:
    """`changed`: arguments that answer the result need `restore`."""

    def __init__(self, root: object, dialect: Spoken) -> None:
        found = record(root)
        if found is None:
            raise Hopeless("its schema is no object")
        self._root = found
        self.dialect: Spoken = dialect
        self.changed = False
        self._takes = _TAKES[dialect]
        self._open: list[str] = []
        self._nodes = 0

    def root(self) -> Json:
        """The whole schema. Raises `Hopeless`, and `NotStrict` for what strict mode cannot say."""
        schema = self._root
        for _ in range(8):
            if (target := resolve(self._root, schema.get("$ref"))) is None:
                break
            schema = merged([target, {key: value for key, value in schema.items() if key != "$ref"}])
        if "$ref" in schema:
            raise Hopeless(f"its schema refers to {schema['$ref']}, which is no schema of its own")
        schema = merged([schema, *(self._followed(part) for part in array(schema.get("allOf")))])
        kinds = kinds_of(schema)
        if kinds and "object" not in kinds:
            raise Hopeless(f"its arguments are no object but {' or '.join(kinds)}")
        schema = self._without_union({**schema, "type": "object"})
        schema = {key: value for key, value in schema.items() if key not in ("allOf", "enum", "const", "not")}
        if self.dialect == "strict" and not schema.get("properties"):
            schema["additionalProperties"] = False
        result = self._object(schema, [])
        if self._refers(result):
            for name in ("$defs", "definitions"):
                if kept := record(schema.get(name)):
                    result[name] = {key: self._node(value) for key, value in kept.items()}
        return result

    def _refers(self, schema: Json) -> bool:
        return b'"$ref"' in msgspec.json.encode(schema)

    def _followed(self, part: object) -> Json:
        schema = record(part) or {}
        target = resolve(self._root, schema.get("$ref"))
        return schema if target is None else target

    def _without_union(self, schema: Json) -> Json:
        """Alternatives on top become properties that may be there; those of all alternatives stay required."""
        parts = [self._followed(part) for key in ("anyOf", "oneOf") for part in array(schema.get(key))]
        if not parts:
            return schema
        base = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        needed = [[str(name) for name in array(part.get("required"))] for part in parts]
        common = [name for name in needed[0] if all(name in one for one in needed)]
        alternatives = [", ".join(one) for one in needed if one]
        result = merged([*({"properties": part.get("properties", {})} for part in parts), base])
        result["required"] = list(dict.fromkeys([*array(base.get("required")), *common]))
        if alternatives:
            said = f"give one of: {' | '.join(alternatives)}"
            result["description"] = _sentence(result.get("description"), [said])
        return result

    def _node(self, value: object) -> Json:
        self._nodes += 1
        schema = record(value)
        if schema is None:  # true, or what is no schema at all
            schema = {}
        if "$ref" in schema:
            return self._reference(schema)
        if "allOf" in schema:
            return self._together(schema)
        union = array(schema.get("anyOf")) or array(schema.get("oneOf"))
        kinds = kinds_of(schema)
        if union and not record(schema.get("properties")):
            return self._union(schema, union, kinds=kinds)
        notes = [_note(key, schema[key]) for key in ("anyOf", "oneOf") if key in schema]
        null = "null" in kinds or schema.get("nullable") is True
        solid = [kind for kind in kinds if kind != "null"]
        if len(solid) > 1:
            rest = {key: item for key, item in schema.items() if key not in ("type", "description")}
            options: list[object] = [{**_fitting(rest, kind), "type": kind} for kind in solid]
            if null:
                options.append({"type": "null"})
            return self._union({"description": schema.get("description")}, options, kinds=[])
        made = self._typed(schema, solid[0] if solid else "null" if null else "", notes=notes)
        return self._nullable(made) if null and solid else made

    def _together(self, schema: Json) -> Json:
        parts = array(schema["allOf"])
        rest = {key: item for key, item in schema.items() if key != "allOf"}
        names = [str(part["$ref"]) for part in map(record, parts) if part is not None and "$ref" in part]
        cut = next((name for name in names if self._open.count(name) >= REPEATS or self._nodes > _BUDGET), "")
        if cut:
            return self._cut(cut, rest)
        self._open += names
        try:
            return self._node(merged([*(self._followed(part) for part in parts), rest]))
        finally:
            del self._open[len(self._open) - len(names) :]

    def _typed(self, schema: Json, kind: str, *, notes: list[str]) -> Json:
        if kind == "object":
            return self._object(schema, notes)
        if kind == "array":
            return self._array(schema, notes)
        if not kind:
            if self.dialect == "strict":
                raise NotStrict
            if self.dialect in ("gemini", "moonshot"):
                kind, notes = "string", [*notes, "any JSON value"]
        if kind == "null" and self.dialect == "gemini":
            return self._finish({"type": "string", "nullable": True}, schema, ["null", *notes])
        result: Json = {"type": kind} if kind else {}
        notes = [*notes, *self._values(schema, kind, result)]
        return self._finish(result, schema, notes)

    def _values(self, schema: Json, kind: str, result: Json) -> list[str]:
        """`enum` and `const` into `result`; what of them has to be said in words."""
        values = [schema["const"]] if "const" in schema else array(schema.get("enum"))
        if not values:
            return []
        if self.dialect != "gemini":
            if "const" in schema and self.dialect != "moonshot":
                result["const"] = schema["const"]
            else:
                result["enum"] = values
            return []
        texts = [value for value in values if isinstance(value, str) and value]
        if kind == "string" and texts:
            result["enum"] = texts
            return [] if len(texts) == len(values) else [_note("enum", values)]
        return [_note("const" if len(values) == 1 else "enum", values[0] if len(values) == 1 else values)]

    def _object(self, schema: Json, notes: list[str]) -> Json:
        properties = record(schema.get("properties")) or {}
        names = plain_names(properties, self.dialect)
        self.changed = self.changed or any(name != made for name, made in names.items())
        required = [name for name in properties if name in array(schema.get("required"))]
        made: Json = {names[name]: self._node(value) for name, value in properties.items()}
        result: Json = {"type": "object"}
        if made or self.dialect != "gemini":
            result["properties"] = made
        if self.dialect == "strict":
            if not properties and schema.get("additionalProperties") is not False:
                raise NotStrict
            for name in properties:
                if name not in required:
                    result["properties"] = made = {**made, name: self._nullable(record(made[name]) or {})}
                    self.changed = True
            required = list(properties)
            result["additionalProperties"] = False
        if required:
            result["required"] = [names[name] for name in required]
        more = schema.get("additionalProperties")
        if more is not None and self.dialect == "gemini":
            notes = [*notes, "no other keys" if more is False else _note("additionalProperties", more)]
        elif more is not None and self.dialect != "strict":
            result["additionalProperties"] = more if isinstance(more, bool) else self._node(more)
        elif more not in (None, False):
            raise NotStrict
        return self._finish(result, schema, notes)

    def _array(self, schema: Json, notes: list[str]) -> Json:
        items: object = schema.get("items")
        row = array(schema.get("prefixItems")) or array(items)
        if row:
            notes = [*notes, _note("items in this order", row)]
            items = row[0] if all(one == row[0] for one in row) else None
        return self._finish({"type": "array", "items": self._node(items)}, schema, notes)

    def _union(self, schema: Json, options: list[object], *, kinds: list[str]) -> Json:
        """Alternatives, the null among them told as the dialect does."""
        shared = {
            key: schema[key] for key in schema if key not in ("anyOf", "oneOf", "description", "nullable", "type")
        }
        found = [merged([shared, record(option) or {}]) for option in options]
        typed = [{**option, "type": kinds} if kinds and not kinds_of(option) else option for option in found]
        solid = [option for option in typed if kinds_of(option) != ["null"]]
        null = len(solid) < len(typed) or schema.get("nullable") is True
        description = schema.get("description")
        if len(solid) == 1:
            only = {**solid[0], "description": _sentence(description, [str(solid[0].get("description") or "")])}
            made = self._node(only)
            return self._nullable(made) if null else made
        made = [self._node(option) for option in solid]
        if self.dialect == "gemini":  # nothing may stand beside anyOf there
            flat = [inner for option in made for inner in _alternatives(option)] or [{"type": "string"}]
            first = {**flat[0], "description": _sentence(description, [str(flat[0].get("description") or "")])}
            if null:
                first["nullable"] = True
            return {"anyOf": [{key: value for key, value in first.items() if value}, *flat[1:]]}
        result: Json = {"anyOf": [*made, {"type": "null"}] if null else made}
        return {"description": description, **result} if description else result

    def _nullable(self, made: Json) -> Json:
        if self.dialect == "gemini":
            first, *others = _alternatives(made)
            first = {**first, "nullable": True}
            return {"anyOf": [first, *others]} if others else first
        kind = made.get("type")
        if isinstance(kind, str) and self.dialect != "moonshot" and "enum" not in made and "const" not in made:
            return {**made, "type": [kind, "null"]}
        if options := array(made.get("anyOf")):
            known = any((record(option) or {}).get("type") == "null" for option in options)
            return made if known else {**made, "anyOf": [*options, {"type": "null"}]}
        if isinstance(kind, list):
            return made
        described = {"description": made["description"]} if "description" in made else {}
        inner = {key: value for key, value in made.items() if key != "description"}
        return {**described, "anyOf": [inner, {"type": "null"}]}

    def _reference(self, schema: Json) -> Json:
        name = str(schema["$ref"])
        target = resolve(self._root, name)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        may_stay = self.dialect in ("openai", "anthropic") or (self.dialect == "strict" and not rest)
        if target is not None and may_stay and _DEFS.fullmatch(name):
            return {**rest, "$ref": name}
        if target is None:
            return self._node({**rest, "description": _sentence(rest.get("description"), [f"see {name}"])})
        if self._open.count(name) >= REPEATS or self._nodes > _BUDGET:
            return self._cut(name, rest)
        self._open.append(name)
        try:
            return self._node(merged([target, rest]))
        finally:
            self._open.pop()

    def _cut(self, name: str, rest: Json) -> Json:
        """Where a reference inside of itself ends: its type, and in words what it is like."""
        if self.dialect == "strict":
            raise NotStrict
        target = resolve(self._root, name) or {}
        said = [
            str(target.get("description") or ""),
            f"nested like {name.rpartition('/')[2].strip('#') or 'the whole'}",
        ]
        kind = next(iter(kinds_of(target)), "object")
        return self._node({"type": kind, "description": _sentence(rest.get("description"), said)})

    def _finish(self, result: Json, schema: Json, notes: list[str]) -> Json:
        """Description, bounds and the rest of `schema` into `result`; what the dialect has no word for in words."""
        for key, value in schema.items():
            if key in _STRUCTURE or key in result:
                continue
            if self._takes is None or (key in self._takes and self._fits(key, value, result)):
                if self._takes is not None or key not in ("$schema", "$id", "$anchor"):
                    result[key] = value
            elif key not in _SILENT:
                notes = [*notes, _note(key, value)]
        if description := _sentence(schema.get("description"), notes):
            result["description"] = description
        return result

    def _fits(self, key: str, value: object, result: Json) -> bool:
        if key == "format" and self.dialect == "gemini":
            return value in _FORMATS.get(str(result.get("type")), ())
        return True


def _alternatives(made: Json) -> list[Json]:
    """What a made schema allows, one by one."""
    return [record(option) or {} for option in array(made.get("anyOf"))] or [made]


def _fitting(schema: Json, kind: str) -> Json:
    """The part of a schema of several types that speaks of `kind`."""
    parts = {"object": ("properties", "required", "additionalProperties"), "array": ("items", "prefixItems")}
    foreign = {key for name, keys in parts.items() if name != kind for key in keys}
    result = {key: value for key, value in schema.items() if key not in foreign and key != "nullable"}
    if "enum" in result:
        numbers = ("integer", "number")
        fits = [
            value
            for value in array(result["enum"])
            if kind_of(value) == kind or (kind in numbers and kind_of(value) in numbers)
        ]
        result = {**result, "enum": fits} if fits else {key: result[key] for key in result if key != "enum"}
    return result


def _note(key: str, value: object) -> str:
    said = _WORDS.get(key, key)
    if value is True:
        return said
    if isinstance(value, list):
        return f"{said}: {', '.join(_text(one) for one in array(value))}"  # pyright: ignore[reportUnknownArgumentType]
    return f"{said}: {_text(value)}"


def _text(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 400 else f"{text[:400]}…"


def _sentence(description: object, notes: Iterable[str]) -> str:
    """A description with what had to be said in words, each thing once."""
    text = description if isinstance(description, str) else ""
    said = [note for note in dict.fromkeys(notes) if note and note not in text]
    if not said:
        return text
    return f"{text} ({'; '.join(said)})" if text else "; ".join(said)
