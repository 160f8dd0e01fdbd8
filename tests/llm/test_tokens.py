from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.tokens import RunningEstimate, estimate, estimate_request
from limpet.testing.wires import ask, tool, user
from limpet.types.content import Image, Text, ToolCall
from limpet.types.message import AssistantMessage, Producer, ToolMessage, UserMessage

ENGLISH = "The quick brown fox jumps over the lazy dog and then runs away from everybody. " * 6
BLOB = base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(64))).decode()


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("こんにちは、元気ですか。明日は晴れると思いますよ", 14, 36),
        ("今天天气很好我们去公园散步吧那里有很多花" * 8, 96, 240),
        (ENGLISH[:400], 80, 130),
        (BLOB, len(BLOB) * 0.6, len(BLOB)),
        ("1234567890" * 10, 40, 100),
        ("", 0, 0),
        ("\U0001f600" * 10, 15, 40),
        ("Привет, как дела? Сегодня хорошая погода.", 10, 25),
    ],
)
def test_classes_of_characters(text: str, low: float, high: float):
    assert low <= estimate(text) <= high


@given(st.text(max_size=300))
def test_an_estimate_is_never_negative_nor_above_three_a_character(text: str):
    assert 0 <= estimate(text) <= 3 * len(text) + 1


def test_lone_surrogates_are_counted_too():
    assert estimate("\ud83d") > 0


def test_a_request_counts_all_its_parts():
    bare = estimate_request(ask())
    call = AssistantMessage((ToolCall("a", "t", '{"path":"x"}'),), Producer("p", "w", "m"))
    result = ToolMessage("a", "t", (Text("result " * 50),))
    picture = UserMessage((Image("0" * 64, "image/png"),))
    full = estimate_request(ask(user("Hi"), call, result, picture, tools=[tool("t")]))
    assert full > bare + 50 + 1_600
    assert estimate_request(ask(), factor=1.5) == round(bare * 1.5)


def test_a_running_estimate_agrees_with_the_whole_one():
    running = RunningEstimate()
    messages = [user("one"), user("two")]
    for text in ("three", "four"):
        messages.append(user(text))
        request = ask(*messages)
        assert running.request(request) == estimate_request(request)
    pruned = ask(*messages[2:])
    assert running.request(pruned) == estimate_request(pruned)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("日本語の文字" * 4, 14, 36), ("汉字" * 80, 96, 240), ("a word or two " * 28 + "seven", 80, 130)],
)
def test_c25_the_estimate_is_near_for_each_script(text: str, least: int, most: int) -> None:
    assert least <= estimate(text) <= most
