"""Markdown as blocks: nothing that was written is left out."""

from __future__ import annotations

import pytest

from limpet.channels.text.document import Block, Reading, Span, clean, parse
from limpet.channels.text.render import render
from limpet.channels.text.table import as_items
from limpet.types.channel import ALL, Markup, Traits
from tests.channels.text.reading import MARKUPS, said


def blocks(text: str) -> tuple[Block, ...]:
    return parse(clean(text), Reading(as_items, lambda address: address.startswith("http")))


def plain(text: str, markup: Markup = "plain") -> str:
    return "".join(body.plain for body in render(text, Traits(markup=markup, limit=ALL)))


@pytest.mark.parametrize("text", [">" * 60 + " deep", "\n".join("  " * level + "- deep" for level in range(70))])
def test_what_is_nested_deeper_than_the_parser_goes_is_kept(text: str) -> None:
    assert said(blocks(text)).count("deep") == text.count("deep")


def test_references_and_html_are_text() -> None:
    text = "See [1] and <b>this</b>.\n\n[1]: https://a.b\n\n<div>\nx\n</div>\n<!-- y -->"
    assert said(blocks(text)).replace("\n", "") == text.replace("\n", "")


def test_cells_beyond_the_columns_are_kept() -> None:
    assert "| 3 | 4" in plain("| a | b |\n|---|---|\n| 1 | 2 | 3 | 4 |")


def test_numbers_of_items_are_as_written_and_go_up() -> None:
    assert plain("3. a\n3. b\n7. c") == "3. a\n4. b\n7. c"


def test_titles_and_addresses_that_lead_nowhere_are_shown() -> None:
    assert said(blocks('[a](b.md "t") ![c](d.png)')) == "a (b.md, t) c (d.png)"


def test_marks_that_do_not_match_are_text() -> None:
    assert blocks("**bold* _x") == (Block("text", (Span("**bold* _x"),)),)


def test_a_mail_address_keeps_its_brackets() -> None:
    assert said(blocks("Pat <pat@example.org>")) == "Pat <pat@example.org>"


def test_halves_of_characters_and_controls_are_replaced() -> None:
    assert clean("a\ud83d\ude00\ud83db\0\x1bc\r\nd") == "a\U0001f600\ufffdb\ufffd\ufffdc\nd"


def test_an_item_without_content_is_shown() -> None:
    assert plain("- a\n-\n- b") == "- a\n- \n- b"


SIZE = 100_000
HOSTILE = {
    "stars": "*" * SIZE,
    "brackets": "[" * SIZE,
    "pictures": "![" * (SIZE // 2),
    "brackets with words": "[a" * (SIZE // 2) + "](u)",
    "ticks": "".join("`" * length + " " for length in range(1, 440)),
    "quotes": "> " * (SIZE // 2),
    "emphasis": "*a **b " * (SIZE // 7),
    "angles": "<http:" * (SIZE // 6),
    "pipes": "a|b\n-|-\n" + "|x" * (SIZE // 2),
    "joiners": "\u200d" * SIZE,
    "fence": "```\n" + "`" * SIZE,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_no_long_time(name: str) -> None:
    """Each takes well under a second; what takes a time of a higher order does not end within the limit of a test."""
    bodies = render(HOSTILE[name], Traits(markup="telegram", limit=4_096, unit="utf16"))
    assert len(bodies) >= 1


@pytest.mark.parametrize("markup", MARKUPS)
def test_a_long_text_of_small_blocks_takes_no_long_time(markup: Markup) -> None:
    bodies = render("a\n\n- b\n" * 4_000, Traits(markup=markup, limit=1_000))
    assert "".join(body.plain for body in bodies).count("b") == 4_000
