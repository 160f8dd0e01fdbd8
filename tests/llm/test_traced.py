from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import UpstreamError
from limpet.llm.exchange import Excerpt, Exchange, Tally
from limpet.llm.traced import LEFT_OUT, trace_of
from limpet.types.profile import Profile
from limpet.types.trace import MARGIN, REQUEST_KEPT, Trace

PROFILE = Profile(provider="p", wire="openai_chat", model="m")


def traced(*body: bytes, url: str = "http://x/v1", headers: dict[str, str] | None = None, answer=()) -> Trace:
    exchange = Exchange(body, Tally())
    exchange.url, exchange.headers = url, headers or {}
    for piece in answer:
        exchange.received.add(piece)
    return trace_of(exchange, UpstreamError("oops"), session="s", profile=PROFILE)


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "api-key", "x-goog-api-key", "X-Amz-Security-Token"])
def test_headers_that_carry_keys_are_left_out(name: str):
    assert traced(headers={name: "sk-1", "Accept": "x"}).headers == {name: LEFT_OUT, "Accept": "x"}


def test_keys_in_an_address_are_left_out():
    url = traced(url="https://me:pw@x:8/v1?api-version=1&key=sk-1&code=7").url
    assert url == "https://x:8/v1?api-version=1&key=[left out]&code=7"


def test_pictures_are_shortened():
    text = traced(b'{"url":"data:image/png;base64,', b"iVBOR" * 1_000, b'"}').request.text
    assert len(text) < 200
    assert "…[5,000 characters of base64]" in text


def test_a_long_request_keeps_both_ends():
    request = traced(b"a " * REQUEST_KEPT, b" end").request
    assert request.omitted == 2 * REQUEST_KEPT + 4 - REQUEST_KEPT
    assert request.tail.endswith("a  end")
    assert len(request.head) == REQUEST_KEPT // 2 + MARGIN


def test_bytes_that_are_no_text_can_be_read():
    assert traced(answer=[b"ok \x00\xff"]).answer.text == "ok \x00\\xff"


@given(st.lists(st.binary(max_size=40)), st.integers(1, 50))
def test_an_excerpt_is_the_beginning_and_the_end(pieces: list[bytes], most: int):
    excerpt = Excerpt(most)
    for piece in pieces:
        excerpt.add(piece)
    whole, head, tail = b"".join(pieces), b"".join(excerpt.head), b"".join(excerpt.tail)
    assert excerpt.size == len(whole)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + len(tail) >= min(len(whole), 2 * most)
    assert len(tail) < most + 40
