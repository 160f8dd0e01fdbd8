from __future__ import annotations

import json
import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from limpet.llm.arguments import CUT_OFF, NOT_OBJECT, SEVERAL, UNREADABLE, settle

KEYS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("text", ["", "null", "  ", "\n", '""', '"null"', "{}"])
def test_nothing_means_an_empty_object(text: str):
    assert settle(text, ended=True) == ("{}", "")


@pytest.mark.parametrize("text", ["[]", "12", "true", '"text"', '"[1]"'])
def test_anything_but_an_object_is_refused(text: str):
    assert settle(text, ended=True) == ("{}", NOT_OBJECT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('<think>{a: 1}?</think> {"a": 1}', {"a": 1}),
        ('{"a": "x\ny"}', {"a": "x\ny"}),
        ('{"a": [1, 2,],}', {"a": [1, 2]}),
        ('{"a": True, "b": None}', {"a": True, "b": None}),
        ("{'a': \"it's\", 'b': 'say \\'hi\\''}", {"a": "it's", "b": "say 'hi'"}),
        ('{a: 1, b_2: {c: "x"}}', {"a": 1, "b_2": {"c": "x"}}),
        ('{"a": 1}}', {"a": 1}),
        ('{"a": "x"', {"a": "x"}),
        ('{ // args\n"a": "http://x"}', {"a": "http://x"}),
        ('Sure: {"a": 1} Done.', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": NaN}', {"a": None}),
        ('{"\\\\\n": 1,}', {"\\\n": 1}),
    ],
)
def test_damage_that_leaves_no_doubt_is_mended(text: str, value: object):
    arguments, fault = settle(text, ended=True)
    assert fault == ""
    assert msgspec.json.decode(arguments) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"p":1}{"p":2}', SEVERAL),
        ('{"path":"a.txt","content":"line1\nli', CUT_OFF),
        ('{"path":"a.txt","cont', CUT_OFF),
        ('{"a": {"b": 1', CUT_OFF),
        ('{"n": 12', CUT_OFF),
        ('{"a": 1 "b": 2}', UNREADABLE),
        ('{"\\\n": null}', UNREADABLE),
        ('{"a": "x\\\ty",}', UNREADABLE),
        ('{"say": "he said "no" twice"}', UNREADABLE),
        ("no arguments", UNREADABLE),
    ],
)
def test_damage_that_needs_guessing_is_refused(text: str, fault: str):
    assert settle(text, ended=True) == ("{}", fault)


def test_a_missing_brace_of_a_stream_that_did_not_end_is_a_cut():
    assert settle('{"a": "x"', ended=False) == ("{}", CUT_OFF)


def test_half_a_character_never_leaves():
    arguments, fault = settle('{"a":"\\ud83d","b":"\\ud83d\\ude00"}', ended=True)
    assert (msgspec.json.decode(arguments), fault) == ({"a": "\ufffd", "b": "\U0001f600"}, "")


@given(OBJECTS)
def test_valid_arguments_stay_as_they_are(value: dict[str, object]):
    assert settle(dumps(value), ended=True) == (dumps(value), "")


DAMAGE = [
    lambda text: f"```json\n{text}\n```",
    lambda text: text[:-1] + ",}",
    lambda text: text + "}",
    lambda text: text.replace("\\n", "\n"),
    lambda text: re.sub(r'([{,]\s*)"(\w+)":', r"\1\2:", text),
    lambda text: json.dumps(text),
    lambda text: text[: len(text) * 6 // 10],
    lambda text: text[: len(text) * 9 // 10],
    lambda text: text + text,
    lambda text: text.replace('\\"', '"'),
]


@given(OBJECTS, st.sampled_from(DAMAGE))
@example({"\\n": None}, DAMAGE[3])
def test_what_is_accepted_of_a_damaged_text_of_an_unfinished_stream_is_the_original(value, damage):
    text = damage(dumps(value))
    arguments, fault = settle(text, ended=False)
    if not fault and arguments != "{}" and text.count('"') == dumps(value).count('"'):
        assert msgspec.json.decode(arguments) == value


@given(st.text(max_size=60), st.booleans())
def test_the_result_is_always_a_json_object(text: str, ended: bool):
    arguments, _ = settle(text, ended=ended)
    assert isinstance(msgspec.json.decode(arguments), dict)
