from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.unicode import Halves, clean, decode_json

ANY_TEXT = st.text(st.characters(codec=None, min_codepoint=1, max_codepoint=0x1FFFF))


class Piece(msgspec.Struct):
    text: str


@given(st.lists(st.sampled_from(["\ud83d", "\ude00", "a", "é", "\U0001f600", ""]), max_size=12))
def test_a_stream_cleaned_by_pieces_is_the_whole_cleaned(pieces: list[str]):
    halves = Halves()
    assert "".join(map(halves.feed, pieces)) + halves.finish() == clean("".join(pieces))


@given(ANY_TEXT)
def test_clean_text_can_be_encoded(text: str):
    clean(text).encode()


def test_pairs_are_joined_and_lone_halves_replaced():
    assert clean("\ud83d\ude00 \ude00 \ud83d") == "\U0001f600 \ufffd \ufffd"


def test_json_with_half_a_character_is_read():
    assert decode_json(b'{"text":"a\\ud83d"}', Piece).text == "a\ud83d"


def test_bytes_that_are_no_utf8_are_read_with_marks():
    assert decode_json(b'{"text":"a\xff"}', Piece).text == "a\ufffd"


@pytest.mark.parametrize("data", [b"{", b"", b'{"text":"\\ud83d"'])
def test_what_is_no_json_stays_an_error(data: bytes):
    with pytest.raises(msgspec.DecodeError):
        decode_json(data, Piece)
