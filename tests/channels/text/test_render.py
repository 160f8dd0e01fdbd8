"""What the messages of an answer look like, and what holds for all of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.channels.text.document import clean
from limpet.channels.text.lines import APART
from limpet.channels.text.render import blocks_of, render, split
from limpet.types.channel import ALL, Markup, Traits
from tests.channels.text.reading import HTML, MARKUPS, check, said, text_of_html

GOLDEN = Path(__file__).parent / "golden"

PIECES = st.sampled_from(
    [
        *"*_`~[]()<>&|#-+>!\\\n\n\n  \t",
        *(
            "**",
            "```",
            "```python\n",
            "\n```\n",
            "~~",
            "\n\n",
            "- ",
            "\n1. ",
            "\n> ",
            "\n| a | b |\n|---|---|\n| c | d |\n",
        ),
        *("[x](https://a.b/c)", "![i](http://p.q)", "[r](docs/a.md)", "<b>", "&amp;", "@everyone", "<!channel>"),
        *("# ", "\n---\n", "    ", "word ", "sentence. ", "😀", "👩‍👩‍👧", "🇩🇪", "é", "漢字。", "\ud83d", "\0", "\x02"),
        *("aaaaaaaaaaaaaaaaaaaa" * 4, "<u@h.org>"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=20), max_size=60).map("".join)
LIMITS = st.integers(150, 700)
Unit = Literal["utf16", "characters", "bytes"]
UNITS = st.sampled_from(("utf16", "characters", "bytes"))


def bare(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("markup", MARKUPS)
@given(text=TEXTS, limit=LIMITS, unit=UNITS, lines=st.sampled_from((0, 0, 1, 4)))
@settings(max_examples=60, deadline=None)
def test_every_body_is_within_the_limits_and_whole(
    markup: Markup, text: str, limit: int, unit: str, lines: int
) -> None:
    fenced = lines and markup in ("discord", "slack", "xmpp", "markdown")
    traits = Traits(markup=markup, limit=limit, unit=unit, lines=max(lines, 4) if fenced else lines)
    bodies = render(text, traits)
    assert bool(bodies) == bool(clean(text).strip())
    for body in bodies:
        if markup != "markdown" or body.markup != clean(text):  # that goes out as it is
            check(body, traits)


@pytest.mark.parametrize("markup", MARKUPS)
@given(text=TEXTS, limit=LIMITS)
@settings(max_examples=40, deadline=None)
def test_the_parts_joined_are_the_whole(markup: Markup, text: str, limit: int) -> None:
    traits = Traits(markup=markup, limit=limit)
    blocks = blocks_of(clean(text), traits)
    assert "".join(map(said, split(blocks, traits))) == said(blocks)


@given(text=TEXTS, limit=LIMITS)
@settings(max_examples=60, deadline=None)
def test_html_in_parts_says_what_it_says_in_one(text: str, limit: int) -> None:
    whole = "".join(text_of_html(body.markup).text for body in render(text, Traits(markup="telegram", limit=ALL)))
    parts = "".join(text_of_html(body.markup).text for body in render(text, Traits(markup="telegram", limit=limit)))
    if "http" not in text:  # an address too long for the limit is shown
        assert bare(parts).replace(">", "") == bare(whole).replace(">", "")  # a quote is marked again in each part


@pytest.mark.parametrize("markup", MARKUPS)
@given(text=TEXTS)
@settings(max_examples=30, deadline=None)
def test_no_letter_is_lost(markup: Markup, text: str) -> None:
    """Of the words of a text, all are in what is sent; `&amp;` is one character, fences name a language."""
    text = re.sub(r"&\w+;|```|\\", "", clean(text).replace("\0", ""))
    bodies = render(text, Traits(markup=markup, limit=ALL))
    shown = "".join(text_of_html(body.markup).text if markup in HTML else body.markup for body in bodies)
    for letter in "wsxiru":
        assert shown.count(letter) >= (text.count(letter) if "http" not in text else 0)


@pytest.mark.parametrize("markup", MARKUPS)
def test_the_sample_is_written_as_recorded(markup: Markup) -> None:
    bodies = render((GOLDEN / "sample.md").read_text("utf-8"), Traits(markup=markup, limit=ALL))
    written = "".join(f"{body.markup}\n=== plain\n{body.plain}\n" for body in bodies)
    recorded = GOLDEN / f"{markup}.txt"
    assert written == recorded.read_bytes().decode()


@pytest.mark.parametrize("markup", [one for one in MARKUPS if one != "markdown"])
@pytest.mark.parametrize("mention", ["@everyone", "@here", "@Room", "@channel", "@all", "<!channel>", "<@&17>"])
def test_mentions_of_everybody_are_only_text(markup: Markup, mention: str) -> None:
    for text in (
        f"hi {mention}!",
        f"**{mention}**",
        f"`{mention}`",
        f"```\n{mention}\n```",
        f"[x](http://a.b/{mention})",
    ):
        (body,) = render(text, Traits(markup=markup))
        assert mention.lower() not in body.markup.lower()
        assert mention.lower() not in body.plain.lower()


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "docs/a.md"])
def test_only_links_to_the_web_and_mail_lead_anywhere(markup: Markup, address: str) -> None:
    (body,) = render(f"[x]({address}) and more", Traits(markup=markup))
    assert "href" not in body.markup
    assert f"<{address}" not in body.markup
    assert address in body.markup.replace("\\", "")


def test_a_link_that_is_longer_than_a_message_is_shown() -> None:
    address = "https://a.b/" + "c" * 900
    bodies = render(f"[x]({address})", Traits(markup="telegram", limit=400))
    assert "".join(body.markup for body in bodies).replace("\n", "") == f"x ({address})"


@pytest.mark.parametrize("text", ["", " \n\t\n", "\n\n"])
def test_a_blank_text_is_no_message(text: str) -> None:
    assert render(text, Traits()) == ()


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("text", ["```\n```", "-", "> ", "#", "---", "[](http://a.b)", "![]( )", "&nbsp;x"])
def test_a_text_of_markup_alone_is_shown_all_the_same(markup: Markup, text: str) -> None:
    (body,) = render(text, Traits(markup=markup))
    assert body.markup.strip()


@pytest.mark.parametrize("markup", ["discord", "slack", "xmpp"])
def test_a_fence_within_code_does_not_end_it(markup: Markup) -> None:
    (body,) = render("````\n```\nx\n```\n````", Traits(markup=markup))
    assert body.markup.count("```") == 2
    assert body.markup.replace(APART, "").count("```") == 4


def test_controls_of_irc_in_the_text_style_nothing() -> None:
    (body,) = render("a\x02b\x03\x34c **d**", Traits(markup="irc"))
    assert body.markup == "a\ufffdb\ufffd4c \x02d\x02"


def test_xmpp_leaves_marks_out_within_a_word() -> None:
    (body,) = render("un**frigging**believable **yes**", Traits(markup="xmpp"))
    assert body.markup == "unfriggingbelievable *yes*"


def test_slack_marks_within_a_word_are_set_apart() -> None:
    (body,) = render("un**frigging**believable", Traits(markup="slack"))
    assert body.markup == f"un{APART}*frigging*{APART}believable"


def test_telegram_nests_no_quotes() -> None:
    (body,) = render("> a\n>\n> > b\n\nc", Traits(markup="telegram"))
    assert body.markup == "<blockquote>a\n\n&gt; b</blockquote>\n\nc"
