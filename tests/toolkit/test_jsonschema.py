from __future__ import annotations

import json

import pytest

from limpet.errors import ArgumentsError
from limpet.toolkit.jsonschema import check_arguments

NODE = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}}}


def faults_of(rule: object, value: object, **root: object) -> str:
    """What is wrong with `value` as the argument `a` under `rule`; empty when nothing is."""
    schema = {"type": "object", "properties": {"a": rule}, **root}
    try:
        check_arguments("t", json.dumps({"a": value}), schema)
    except ArgumentsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("rule", "good", "bad", "words"),
    [
        ({"type": "string"}, "x", 1, "a: expected string, got 1"),
        ({"type": ["string", "null"]}, None, 1, "expected string or null"),
        ({"type": "string", "nullable": True}, None, 1, "expected string"),
        ({"type": "integer"}, 2.0, 2.5, "expected integer"),
        ({"type": "number"}, 2, True, "expected number"),
        ({"const": 1}, 1.0, True, "expected 1"),
        ({"enum": [0, 1, "x"]}, "x", False, 'expected one of 0, 1, "x"'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, 1, "none of the 2 alternatives"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, 3, 7, "exactly one"),
        ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2, 4, "at most 3"),
        ({"not": {"type": "string"}}, 1, "x", "must not be"),
        ({"minimum": 1, "exclusiveMaximum": 3}, 1, 3, "below 3"),
        ({"minimum": 1, "exclusiveMinimum": True}, 2, 1, "above 1"),
        ({"multipleOf": 0.1}, 0.3, 0.35, "multiple of 0.1"),
        ({"pattern": "^a"}, "abc", "b", "text like ^a"),
        ({"pattern": "("}, "abc", None, ""),
        ({"minLength": 2, "maxLength": 3}, "ab", "abcd", "at most 3"),
        ({"items": {"type": "integer"}, "minItems": 1}, [1], [], "at least 1"),
        ({"items": {"type": "integer"}}, [1], [1, "x"], "a[1]: expected integer"),
        ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, ["x", 1], ["x", "y"], "a[1]"),
        ({"uniqueItems": True}, [1, 2], [{"b": 1}, {"b": 1}], "twice"),
        ({"additionalProperties": False, "properties": {"b": {}}}, {"b": 1}, {"c": 1}, "a.c: unknown argument"),
        ({"additionalProperties": {"type": "integer"}}, {"b": 1}, {"b": "x"}, "a.b: expected integer"),
        ({"patternProperties": {"^x": {"type": "integer"}}}, {"x1": 1, "y": "z"}, {"x1": "z"}, "a.x1"),
        ({"propertyNames": {"pattern": "^x"}}, {"x": 1}, {"y": 1}, "a.y: expected text like ^x"),
        ({"required": ["b"]}, {"b": None}, {}, "a.b: required argument is missing"),
        ({"minProperties": 1}, {"b": 1}, {}, "at least 1"),
        (True, 1, None, ""),
    ],
)
def test_what_each_keyword_allows(rule: object, good: object, bad: object, words: str):
    assert faults_of(rule, good) == ""
    found = faults_of(rule, bad)
    assert words in found
    assert bool(found) == bool(words)


def test_nothing_is_allowed_under_false():
    assert "nothing is allowed" in faults_of(False, 1)


def test_references_are_followed_also_into_themselves():
    rule = {"$ref": "#/$defs/node"}
    good = {"name": "a", "next": {"name": "b", "next": {"name": "c"}}}
    assert faults_of(rule, good, **{"$defs": {"node": NODE}}) == ""
    bad = {"name": "a", "next": {"name": "b", "next": {"name": 3}}}
    assert "a.next.next.name: expected string" in faults_of(rule, bad, **{"$defs": {"node": NODE}})


@pytest.mark.parametrize("reference", ["#/properties/a", "https://x.test/schema", "#/nowhere/0"])
def test_references_that_lead_nowhere_allow_everything(reference: str):
    assert faults_of({"$ref": reference}, 1) == ""


def test_alternatives_that_refer_to_themselves_come_to_an_end():
    itself = {"$ref": "#/$defs/x"}
    assert faults_of(itself, 1, **{"$defs": {"x": {"anyOf": [itself, itself]}}}) == ""


def test_every_fault_is_listed():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}
    with pytest.raises(ArgumentsError) as caught:
        check_arguments("t", '{"a":1}', schema)
    assert str(caught.value).count("\n- ") == 2


@pytest.mark.parametrize(("arguments", "words"), [("[]", "expected an object"), ('{"a', "cut off")])
def test_what_is_no_object_is_told(arguments: str, words: str):
    with pytest.raises(ArgumentsError, match=words):
        check_arguments("t", arguments, {})


def test_no_arguments_are_an_empty_object():
    assert check_arguments("t", "", {"type": "object"}) == {}
