"""Where a text is cut."""

from __future__ import annotations

import pytest

from limpet.channels.text.document import Block, Span
from limpet.channels.text.render import render
from limpet.channels.text.split import Strip, whole
from limpet.types.channel import Markup, Traits


def parts(text: str, limit: int, markup: Markup = "plain", lines: int = 0) -> list[str]:
    return [body.markup for body in render(text, Traits(markup=markup, limit=limit, lines=lines))]


def test_between_paragraphs_first() -> None:
    assert parts("a" * 60 + "\n\n" + "b" * 60, 100) == ["a" * 60, "b" * 60]


def test_then_after_a_line_a_sentence_a_word_a_character() -> None:
    assert parts("a" * 60 + "\n" + "b" * 60, 100) == ["a" * 60, "b" * 60]
    assert parts(f"{'a' * 60}. {'b' * 60}", 100) == ["a" * 60 + ".", "b" * 60]
    assert parts(f"{'a' * 60} {'b' * 60}", 100) == ["a" * 60, "b" * 60]
    assert parts("a" * 120, 100) == ["a" * 100, "a" * 20]


def test_a_heading_goes_with_what_it_stands_above() -> None:
    assert parts("a" * 60 + "\n\n# Head\n\n" + "b" * 60, 100) == ["a" * 60, "Head\n\n" + "b" * 60]


def test_a_style_goes_on_in_the_next_part() -> None:
    first, second = parts(f"**{'a' * 60} {'b' * 60}**", 100, "telegram")
    assert (first, second) == (f"<b>{'a' * 60}</b>", f"<b>{'b' * 60}</b>")


def test_a_list_goes_on_in_the_next_part() -> None:
    first, second = parts("\n".join(f"{number}. {'w' * 60}" for number in (1, 2)), 120, "matrix")
    assert first.startswith("<ol><li>")
    assert second.startswith('<ol start="2"><li>')


def test_where_a_message_is_a_line_each_line_is_one() -> None:
    assert parts("a\nb\n\n```\nc\n\nd\n```", 100, "irc", 1) == ["a", "b", "c", "d"]


FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
THUMB = "\U0001f44d\U0001f3fd"


@pytest.mark.parametrize("sign", [FAMILY, FLAG, THUMB, "e\u0301", "1\ufe0f\u20e3"])
def test_a_sign_of_several_characters_stays_whole(sign: str) -> None:
    text = "x" + sign * 40
    for part in parts(text, 50):
        assert part.removeprefix("x").replace(sign, "") == ""
    assert whole(text, 2, 0) == 1


def test_a_row_of_joiners_is_cut_all_the_same() -> None:
    assert "".join(parts("a" + "\u200d" * 300, 100)) == "a" + "\u200d" * 300


@pytest.mark.parametrize(("start", "end"), [(0, 3), (2, 6), (5, 9), (0, 9), (3, 6)])
def test_a_part_of_a_block_has_its_text_in_its_styles(start: int, end: int) -> None:
    block = Block("text", (Span("abc", bold=True), Span("def"), Span("ghi", code=True)))
    part = Strip(block).part(start, end)
    assert "".join(span.text for span in part.spans) == "abcdefghi"[start:end]
    assert all(span.bold == (span.text in "abc") for span in part.spans)


def test_a_limit_smaller_than_the_markup_leaves_the_markup_out() -> None:
    assert "".join(parts("```python\nab\n```", 8, "telegram")) == "ab"
