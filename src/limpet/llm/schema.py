"""Tools as each service takes them: one JSON Schema of the tool, down to the dialect of a service.

The schema of a tool is never changed: it stays what arguments are checked against. What a dialect cannot say moves
into descriptions; what arrives under another name (or as a null that stands for nothing) is put back by `restore`.
Rules: Gemini takes a subset of OpenAPI 3.0 and refuses every other keyword; Moonshot wants no references but to
`$defs`, types inside of alternatives and nothing beside a reference; OpenAI wants `properties` and `items` everywhere
and, where strict, all properties required and none besides; Anthropic wants plain property names and no union on top.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from limpet.llm.names import tool_name
from limpet.types.event import Notice
from limpet.types.profile import Profile, SchemaDialect
from limpet.types.tool import ToolSpec

Json = dict[str, object]
Spoken = Literal["openai", "strict", "anthropic", "gemini", "moonshot"]
_WIRE: dict[str, Spoken] = {"anthropic": "anthropic", "bedrock": "anthropic", "gemini": "gemini"}


class Offered(Struct, frozen=True):
    """A tool in the words of a service. `empty`: it takes no arguments at all."""

    name: str
    description: str
    parameters: Raw
    strict: bool = False
    empty: bool = False


class Offer(Struct, frozen=True):
    """The tools a service can be told of, and a sentence for each it cannot."""

    tools: tuple[Offered, ...]
    dropped: tuple[str, ...] = ()


class _Lowered(Struct, frozen=True):
    parameters: Raw
    strict: bool
    empty: bool
    changed: bool
    fault: str = ""


def dialect_of(profile: Profile) -> Spoken:
    wanted: SchemaDialect = profile.schema
    return wanted if wanted else _WIRE.get(profile.wire, "openai")


def offer_of(tools: tuple[ToolSpec, ...], profile: Profile) -> Offer:
    """`tools` as the service of `profile` takes them. One that it cannot be told of is left out alone."""
    dialect = dialect_of(profile)
    found: dict[str, Offered] = {}
    dropped: list[str] = []
    for tool in tools:
        lowered = _lower(bytes(tool.parameters), dialect)
        name = tool_name(tool.name)
        fault = lowered.fault or (f"another tool is called {name} already" if name in found else "")
        if fault:
            dropped.append(f"the tool {tool.name} is left out for {profile.reference}: {fault}")
            continue
        found[name] = Offered(name, tool.description, lowered.parameters, lowered.strict, lowered.empty)
    return Offer(tuple(found.values()), tuple(dropped))


def restore(arguments: str, tool: ToolSpec, profile: Profile) -> str:
    """`arguments` (JSON object text) as the tool's own schema names them."""
    dialect = dialect_of(profile)
    if not _lower(bytes(tool.parameters), dialect).changed:
        return arguments
    from limpet.llm.schema_back import put_back  # few tools need it

    return put_back(arguments, bytes(tool.parameters), dialect)


class Offers:
    """Says once of each tool that a wire cannot offer why it is left out."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._told: set[str] = set()

    def news(self, tools: tuple[ToolSpec, ...]) -> list[Notice]:
        if not self._profile.tools:
            return []
        fresh = [text for text in offer_of(tools, self._profile).dropped if text not in self._told]
        self._told.update(fresh)
        return [Notice(text, "warning") for text in fresh]


@lru_cache(maxsize=2_048)
def _lower(parameters: bytes, dialect: Spoken) -> _Lowered:
    try:
        root: object = msgspec.json.decode(parameters)
    except msgspec.DecodeError as error:
        return _Lowered(Raw(b"{}"), False, True, False, f"its schema is no JSON ({error})")
    if dialect in ("openai", "anthropic") and _is_plain(parameters, on_top=True):
        return _Lowered(Raw(parameters), False, False, False)
    from limpet.llm.schema_down import Hopeless, NotStrict, Walk  # our own tools do without

    try:
        walk = Walk(root, dialect)
        schema = walk.root()
    except NotStrict:
        return _lower(parameters, "openai")
    except Hopeless as reason:
        return _Lowered(Raw(b"{}"), False, True, False, str(reason))
    except RecursionError:
        return _Lowered(Raw(b"{}"), False, True, False, "its schema is nested too deep")
    strict = dialect == "strict"
    return _Lowered(Raw(msgspec.json.encode(schema)), strict, not schema.get("properties"), walk.changed)


class _Plain(Struct, forbid_unknown_fields=True):
    """The schemas that our own tools have, which OpenAI and Anthropic take as they are."""

    type: Literal["string", "integer", "number", "boolean", "object", "array"]
    properties: dict[str, Raw] | None = None
    items: Raw = Raw()
    required: list[str] = []
    description: str = ""
    enum: list[str] | None = None
    default: object = None


def _is_plain(value: bytes | Raw, *, on_top: bool = False) -> bool:
    try:
        schema = msgspec.json.decode(value, type=_Plain)
    except msgspec.DecodeError:
        return False
    if on_top and schema.type != "object":
        return False
    if schema.type == "array" and not _is_plain(schema.items):
        return False
    properties = schema.properties
    if properties is None:
        return schema.type != "object"
    named = all(name.isascii() and name.isidentifier() and len(name) <= 64 for name in properties)
    return named and set(schema.required) <= set(properties) and all(map(_is_plain, properties.values()))
