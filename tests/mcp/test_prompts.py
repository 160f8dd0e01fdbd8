"""Prompts of servers: how what a person types becomes their arguments, and what they say."""

from __future__ import annotations

import pytest

from limpet.errors import InputError
from limpet.mcp.kept import Argument, ListedPrompt
from limpet.mcp.prompts import given, said
from limpet.mcp.sdk import Part, Resource, Script, Spoken

ONE = ListedPrompt("one", arguments=(Argument("topic", required=True),))
TWO = ListedPrompt("two", arguments=(Argument("city", required=True), Argument("state")))


@pytest.mark.parametrize(
    ("prompt", "text", "expected"),
    [
        (ONE, "all of a = b's words", {"topic": "all of a = b's words"}),
        (ONE, "topic=tides", {"topic": "tides"}),
        (TWO, "Berlin", {"city": "Berlin"}),
        (TWO, '"New York" NY', {"city": "New York", "state": "NY"}),
        (TWO, 'state=NY city="New York"', {"state": "NY", "city": "New York"}),
        (ListedPrompt("none"), "", {}),
    ],
)
def test_arguments_by_name_by_order_or_all_at_once(prompt: ListedPrompt, text: str, expected: dict[str, str]) -> None:
    assert given(prompt, text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "also needs city"),
        ("state=NY", "also needs city"),
        ("a b c", "takes 2 arguments"),
        ("city=a country=b", "country=b is no argument"),
        ("it's", "cannot be read"),
    ],
)
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        given(TWO, text)


def test_texts_and_embedded_files_are_joined_and_the_rest_named() -> None:
    parts = (
        Part("text", text="Look:"),
        Part("resource", resource=Resource("file:///a", text="hi")),
        Part("image", mime_type="image/png"),
    )
    script = Script(tuple(Spoken("user", part) for part in parts))
    assert said(script) == "Look:\n\n[resource file:///a]\nhi\n\n[image image/png: left out]"


def test_a_conversation_says_who_speaks() -> None:
    script = Script((Spoken("user", Part("text", text="a")), Spoken("assistant", Part("text", text="b"))))
    assert said(script) == "user: a\n\nassistant: b"
