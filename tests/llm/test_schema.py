from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from limpet.llm.schema import Offers, dialect_of, offer_of, restore
from limpet.testing.fakes.schemas import check_schema
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

ANY = {"type": "string", "description": "any JSON value"}
DIALECTS = ("openai", "strict", "anthropic", "gemini", "moonshot")


def profile(dialect: str) -> Profile:
    return Profile(provider="p", wire="openai_chat", model="m", schema=dialect)


def spec(schema: object, name: str = "t") -> ToolSpec:
    return ToolSpec(name, "d", Raw(schema if isinstance(schema, bytes) else json.dumps(schema).encode()))


def lowered(schema: object, dialect: str) -> dict:
    (tool,) = offer_of((spec(schema),), profile(dialect)).tools
    check_schema(msgspec.json.decode(tool.parameters), "t", dialect="strict" if tool.strict else dialect_or(dialect))
    return msgspec.json.decode(tool.parameters)


def dialect_or(dialect: str):
    return "openai" if dialect == "strict" else dialect


def property_of(rule: object, dialect: str) -> dict:
    return lowered({"type": "object", "properties": {"a": rule}, "required": ["a"]}, dialect)["properties"]["a"]


@pytest.mark.parametrize(
    ("rule", "gemini", "moonshot"),
    [
        ({"const": 5}, {"type": "integer", "description": "always: 5"}, {"type": "integer", "enum": [5]}),
        ({"const": "x"}, {"type": "string", "enum": ["x"]}, {"type": "string", "enum": ["x"]}),
        (
            {"enum": [0, 1, 2], "description": "level"},
            {"type": "integer", "description": "level (one of: 0, 1, 2)"},
            {"type": "integer", "enum": [0, 1, 2], "description": "level"},
        ),
        (
            {"type": ["string", "null"]},
            {"type": "string", "nullable": True},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        (
            {"type": ["string", "integer"], "minLength": 2},
            {"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "minLength": 2}]},
            {"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "minLength": 2}]},
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            {"type": "array", "items": {"type": "string"}, "description": "uniqueItems"},
            {"type": "array", "items": {"type": "string"}, "description": "uniqueItems"},
        ),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "number", "description": "exclusiveMinimum: 0"},
            {"type": "number", "exclusiveMinimum": 0},
        ),
        ({}, {"type": "string", "description": "any JSON value"}, {"type": "string", "description": "any JSON value"}),
        (
            True,
            {"type": "string", "description": "any JSON value"},
            {"type": "string", "description": "any JSON value"},
        ),
        (
            {"type": "string", "format": "uri", "title": "T"},
            {"type": "string", "description": "format: uri"},
            {"type": "string", "format": "uri"},
        ),
    ],
)
def test_what_a_keyword_becomes(rule: object, gemini: object, moonshot: object):
    assert property_of(rule, "gemini") == gemini
    assert property_of(rule, "moonshot") == moonshot


def test_what_a_service_takes_stays_as_it_is():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x", "default": "x"}}}
    assert lowered(schema, "openai") == lowered(schema, "anthropic") == schema


def test_strict_makes_what_is_optional_null():
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": ["x"]}}, "required": ["a"]}
    (tool,) = offer_of((spec(schema),), profile("strict")).tools
    found = msgspec.json.decode(tool.parameters)
    assert tool.strict
    assert (found["required"], found["additionalProperties"]) == (["a", "b"], False)
    assert found["properties"]["b"]["anyOf"][1] == {"type": "null"}
    assert restore('{"a":"1","b":null}', spec(schema), profile("strict")) == '{"a":"1"}'


@pytest.mark.parametrize("rule", [{}, {"type": "object"}, {"type": "object", "additionalProperties": {}}])
def test_a_tool_that_strict_mode_cannot_say_is_told_plainly(rule: object):
    (tool,) = offer_of((spec({"type": "object", "properties": {"a": rule}}),), profile("strict")).tools
    assert not tool.strict


@pytest.mark.parametrize("dialect", ["gemini", "moonshot"])
def test_recursion_is_cut_at_a_fixed_depth(dialect: str):
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}
    found = lowered({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}, dialect)
    text = json.dumps(found)
    assert text.count('"next"') == 2
    assert "nested like n" in text


def test_many_references_do_not_explode():
    names = [f"d{n}" for n in range(12)]
    every = {name: {"$ref": f"#/$defs/{name}"} for name in names}
    schema = {
        "type": "object",
        "properties": every,
        "$defs": {n: {"type": "object", "properties": every} for n in names},
    }
    assert len(json.dumps(lowered(schema, "gemini"))) < 2_000_000


def test_alternatives_on_top_become_properties():
    parts = [{"properties": {n: {"type": "string"}}, "required": [n, "x"]} for n in ("a", "b")]
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": parts}
    for dialect in DIALECTS:
        assert list(lowered(schema, dialect)["properties"]) == ["a", "b", "x"]
    assert lowered(schema, "openai")["required"] == ["x"]
    assert lowered(schema, "openai")["description"] == "give one of: a, x | b, x"


def test_odd_names_are_told_plainly_and_come_back_as_they_were():
    inner = {"type": "object", "properties": {"a b": {"type": "string"}, "a_b": {"type": "string"}}}
    schema = {"type": "object", "properties": {"~optional": {"type": "array", "items": inner}}}
    found = lowered(schema, "gemini")["properties"]
    assert list(found["_optional"]["items"]["properties"]) == ["a_b_2", "a_b"]
    sent = '{"_optional":[{"a_b_2":"1","a_b":"2"}],"other":3}'
    back = json.loads(restore(sent, spec(schema), profile("gemini")))
    assert back == {"~optional": [{"a b": "1", "a_b": "2"}], "other": 3}
    assert restore("{broken", spec(schema), profile("gemini")) == "{broken"


HOPELESS = [b"[]", b"{oops", b'{"type":"string"}', b'{"$ref":"https://x.test/"}', b'{"$ref":"#"}']


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("schema", HOPELESS)
def test_a_hopeless_tool_is_left_out_alone(schema: bytes, dialect: str):
    offer = offer_of((spec(schema, "bad"), spec({}, "good"), spec({}, "good")), profile(dialect))
    assert [tool.name for tool in offer.tools] == ["good"]
    assert len(offer.dropped) == 2
    assert "the tool bad is left out" in offer.dropped[0]


def test_what_is_left_out_is_told_once():
    offers = Offers(profile("gemini"))
    bad = spec(b"[]", "bad")
    assert [notice.level for notice in offers.news((bad,))] == ["warning"]
    assert offers.news((bad, spec({}))) == []


def test_a_wire_has_its_usual_dialect():
    wires = ("gemini", "anthropic", "bedrock", "openai_chat", "openai_responses")
    found = [dialect_of(Profile(provider="p", wire=wire, model="m")) for wire in wires]
    assert found == ["gemini", "anthropic", "anthropic", "openai", "openai"]


NAMES = st.sampled_from(["a", "b c", "~d", "$e", "1f"])
LEAVES = st.sampled_from(
    [
        {},
        True,
        {"type": "string", "pattern": "^x", "format": "uri"},
        {"type": ["integer", "null"], "minimum": 1},
        {"const": 3},
        {"enum": [1, "a", None, ""]},
        {"type": "array"},
        {"type": "array", "items": [{"type": "string"}, {}]},
        {"$ref": "#/$defs/n"},
        {"$ref": "#/definitions/m", "description": "m"},
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"type": "object", "propertyNames": {"pattern": "x"}},
        {"type": "any"},
        {"type": "null"},
    ]
)


def grown(inner):
    properties = st.dictionaries(NAMES, inner, max_size=3)
    objects = st.builds(lambda p: {"type": "object", "properties": p, "required": [*p, "gone"]}, properties)
    lists = st.lists(inner, min_size=1, max_size=3)
    unions = st.builds(
        lambda key, parts: {key: parts, "description": "u"}, st.sampled_from(["anyOf", "oneOf", "allOf"]), lists
    )
    return objects | unions | st.builds(lambda item: {"type": "array", "items": item, "uniqueItems": True}, inner)


@given(st.dictionaries(NAMES, st.recursive(LEAVES, grown, max_leaves=8), max_size=4), st.sampled_from(DIALECTS))
def test_whatever_a_tool_says_the_service_takes_it(properties: dict, dialect: str):
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "~x": {"type": "string"}}}
    lowered(
        {"type": "object", "properties": properties, "$defs": {"n": node}, "definitions": {"m": {"type": "string"}}},
        dialect,
    )
