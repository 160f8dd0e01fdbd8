from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.sse import ServerEvent, SseParser

STREAM = (
    b"\xef\xbb\xbf: hello\r\n\r\nevent: a\ndata: one\ndata: two\n\n"
    b"data:x\r\rdata: \xf0\x9f\x98\x80\r\n\r\nid: 7\nretry: 5\n\ndata\n\ndata: last"
)
EVENTS = [
    ServerEvent("a", b"one\ntwo"),
    ServerEvent("", b"x"),
    ServerEvent("", "\U0001f600".encode()),
    ServerEvent("", b"last"),
]


def parse(chunks: list[bytes]) -> list[ServerEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


def test_line_ends_comments_names_and_a_byte_order_mark():
    assert parse([STREAM]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_chunks_may_end_anywhere(cuts: list[int]):
    places = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert parse(chunks) == EVENTS


def test_byte_by_byte():
    assert parse([STREAM[at : at + 1] for at in range(len(STREAM))]) == EVENTS


@pytest.mark.parametrize("text", [b"", b"\n\n\n", b": only a comment\n\n", b"event: x\n\n"])
def test_nothing_to_say_gives_no_event(text: bytes):
    assert parse([text]) == []
