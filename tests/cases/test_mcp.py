"""Faults of tools from elsewhere, as people reported them."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec import Raw

from limpet.errors import ArgumentsError
from limpet.testing.fakes import Call, FakeAnthropic, FakeGemini, FakeOpenAI, FakeResponses, Reply, Rules
from limpet.testing.wires import ask, collect, wire_at
from limpet.toolkit.jsonschema import check_arguments
from limpet.types.event import Done, Notice
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "node": {"$ref": "#/$defs/Node"},
        "tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/properties/tree"}}}},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "a name"},
        "either": {"type": ["string", "null"]},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "keys": {"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}},
        "set": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "fixed": {"const": "v1"},
        "level": {"enum": [0, 1, 2], "description": "how loud"},
        "~optional": {"type": "string"},
        "nothing": {"type": "object"},
        "anything": {},
    },
    "required": ["level"],
    "$defs": {"Node": {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}}},
}
ODD = ToolSpec("odd", "an odd tool", Raw(json.dumps(SCHEMA).encode()))
NONE = ToolSpec("none", "takes nothing", Raw(b'{"type":"object"}'))
EMPTY = ToolSpec("empty", "says nothing", Raw(b"{}"))
HOPELESS = ToolSpec("hopeless", "takes a text", Raw(b'{"type":"string"}'))
TOOLS = (ODD, NONE, HOPELESS, EMPTY)
SERVICES = {
    "gemini": (FakeGemini, Profile(provider="gemini", wire="gemini", model="g"), Rules()),
    "kimi": (FakeOpenAI, Profile(provider="kimi", wire="openai_chat", model="k", schema="moonshot"), Rules(kimi=True)),
    "openai": (FakeOpenAI, Profile(provider="openai", wire="openai_chat", model="o"), Rules()),
    "strict": (FakeResponses, Profile(provider="openai", wire="openai_responses", model="o", schema="strict"), Rules()),
    "anthropic": (FakeAnthropic, Profile(provider="anthropic", wire="anthropic", model="c"), Rules()),
}


def offered(service: str, reply: Reply | None = None):
    """The events of two answers of the service with all tools on offer, and the first request's raw body."""
    fake, profile, rules = SERVICES[service]

    async def run():
        script = [reply or Reply(text=("ok",))] * 2
        async with fake(script, rules=rules) as server, wire_at(server, profile) as model:
            events = [*await collect(model, ask(tools=TOOLS)), *await collect(model, ask(tools=TOOLS))]
            assert server.refusals == []
            return events, server.requests[0].raw.decode()

    return asyncio.run(run())


@pytest.mark.parametrize("service", SERVICES)
def test_c61_every_strict_service_takes_odd_schemas_and_their_meaning_is_kept(service: str):
    _, raw = offered(service)
    for word in ("odd", "none", "empty", "how loud", "a name", "v1", "^[a-z]+$", "unique"):
        assert word in raw
    assert '"hopeless"' not in raw


@pytest.mark.parametrize("service", SERVICES)
def test_c61_a_hopeless_tool_is_left_out_alone_with_one_warning(service: str):
    events, _ = offered(service)
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.level == "warning"
    assert "the tool hopeless is left out" in notice.text
    assert sum(isinstance(event, Done) for event in events) == 2


@pytest.mark.parametrize(
    ("service", "name"), [("gemini", "_optional"), ("anthropic", "_optional"), ("openai", "~optional")]
)
def test_c61_a_call_comes_back_in_the_words_of_the_tool(service: str, name: str):
    events, _ = offered(service, Reply(calls=(Call("odd", json.dumps({"level": 1, name: "x"})),)))
    call = next(event.message.calls[0] for event in events if isinstance(event, Done))
    assert check_arguments("odd", call.arguments, SCHEMA) == {"level": 1, "~optional": "x"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "level: required argument is missing"),
        ({"level": 3}, "level: expected one of 0, 1, 2"),
        ({"level": 1, "set": ["a", "a"]}, "set: holds an item twice"),
        ({"level": 1, "keys": {"A": 1}}, "keys.A: expected text like"),
        ({"level": 1, "map": {"a": "x"}}, "map.a: expected integer"),
        ({"level": 1, "tree": {"kids": [{"kids": "x"}]}}, "tree.kids[0].kids: expected array"),
        ({"level": 1, "fixed": "v2"}, 'fixed: expected "v1"'),
        ({"level": 1, "more": 1}, "more: unknown argument"),
    ],
)
def test_c61_arguments_are_checked_against_the_original(arguments: object, words: str):
    with pytest.raises(ArgumentsError) as caught:
        check_arguments("odd", json.dumps(arguments), SCHEMA)
    assert words in str(caught.value)
