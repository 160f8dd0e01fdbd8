from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.prefix import PrefixCache, body_of, to_json
from limpet.testing.wires import user
from limpet.types.content import Text
from limpet.types.message import AssistantMessage, Message, Producer

PRODUCER = Producer("p", "w", "m")


def group(message: Message) -> str:
    return type(message).__name__


def text(messages: Sequence[Message]) -> bytes:
    return b"+".join(to_json(message) for message in messages)


class Encoder:
    def __init__(self) -> None:
        self.groups = 0

    def __call__(self, messages: Sequence[Message], last: bool) -> bytes:
        self.groups += 1
        return text(messages)


def message(sign: str) -> Message:
    return user(sign) if sign.islower() else AssistantMessage((Text(sign),), PRODUCER)


@given(st.lists(st.text("abAB", min_size=1, max_size=8), min_size=1, max_size=6))
def test_a_cached_body_equals_a_fresh_one(histories: list[str]):
    cache = PrefixCache(block=150)
    for history in histories:
        messages = tuple(map(message, history))
        fresh = PrefixCache().encode("s", messages, group=group, encode=Encoder())
        assert b",".join(cache.encode("s", messages, group=group, encode=Encoder())) == b",".join(fresh)


def test_only_what_is_new_is_encoded():
    cache, history = PrefixCache(), tuple(map(message, "aBaBaBaB" * 100))
    cache.encode("s", history, group=group, encode=Encoder())
    encoder = Encoder()
    parts = cache.encode("s", (*history, message("a")), group=group, encode=encoder)
    assert encoder.groups == 2
    assert b",".join(parts).count(b'"type":"user"') == 401


@pytest.mark.parametrize("limits", [{"cap": 500}, {"most": 2}])
def test_the_least_used_session_goes_first(limits: dict[str, int]):
    cache, encoder = PrefixCache(**limits), Encoder()
    history = tuple(map(message, "aBaBa"))
    for session in ("one", "two", "three", "one"):
        cache.encode(session, history, group=group, encode=encoder)
    assert encoder.groups == 20


@given(st.lists(st.integers(0, 100_000), max_size=4))
def test_a_body_is_its_parts_with_commas_between(sizes: list[int]):
    parts = [b"x" * size for size in sizes]
    body = body_of({"a": 1}, parts, key="b", tail={"c": 2})
    assert b"".join(body) == b'{"a":1,"b":[' + b",".join(parts) + b'],"c":2}'


def test_lone_surrogates_anywhere_in_a_value_become_marks():
    assert to_json({"a\ud83d": ["\ude00", ("x", 1, None)]}) == '{"a\ufffd":["\ufffd",["x",1,null]]}'.encode()
