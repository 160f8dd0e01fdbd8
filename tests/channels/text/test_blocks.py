"""Where an answer that grows is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.channels.text.blocks import LEAST, blocks


def test_a_short_paragraph_waits_for_more() -> None:
    assert blocks("One.\n\nTwo.\n\n", False) == ()
    assert blocks("One.\n\nTwo.", True) == ("One.\n\nTwo.",)


def test_a_paragraph_goes_when_it_has_ended() -> None:
    long = "word " * (LEAST // 4)
    assert blocks(long, False) == ()
    assert blocks(f"{long}\n\nNext", False) == (f"{long}\n\n",)


def test_code_is_never_cut_and_what_stands_before_it_goes_first() -> None:
    code = "```\n" + "line\n\n" * 100
    assert blocks(f"See:\n\n{code}", False, limit=500) == ("See:\n\n",)
    assert blocks(f"See:\n\n{code}```\n", False, limit=500) == ("See:\n\n", f"{code}```\n")


def test_a_paragraph_longer_than_a_message_is_cut_at_a_sentence() -> None:
    first, *_ = blocks("Six words make up this sentence. " * 30, False, limit=300)
    assert first.endswith("sentence. ")
    assert len(first) <= 300


PIECES = st.sampled_from(["```\n", "\n```\n", "\n\n", "word. ", "x" * 150, "- a\n", "> b\n", "~~~\n", "\n", "`` "])


@given(st.lists(PIECES, max_size=40), st.integers(200, 500))
def test_blocks_sent_while_an_answer_grows_are_the_answer(pieces: list[str], limit: int) -> None:
    text, sent = "", ""
    for piece in pieces:
        text += piece
        new = "".join(blocks(text, False, start=len(sent), limit=limit))
        sent += new
        assert text.startswith(sent)
    sent += "".join(blocks(text, True, start=len(sent), limit=limit))
    assert sent == text
