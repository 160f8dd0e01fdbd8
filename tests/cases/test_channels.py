"""Cases C40 and C41: answers as messages of a platform, rendered and cut."""

from __future__ import annotations

import re

import pytest

from limpet.channels.text.render import render, sizes
from limpet.types.channel import Body, Markup, Traits
from tests.channels.text.reading import HTML, MARKUPS, check, text_of_html

FENCED = ("discord", "xmpp", "markdown")
"""Those whose fences name the language; Slack's do not."""


def traits_of(markup: Markup) -> Traits:
    """A message of Telegram's size; of Discord's on Discord."""
    if markup == "discord":
        return Traits(markup=markup, limit=2_000)
    return Traits(markup=markup, limit=4_096, unit="utf16")


def parts_of(text: str, markup: Markup) -> tuple[Body, ...]:
    traits = traits_of(markup)
    bodies = render(text, traits)
    for body in bodies:
        check(body, traits)
    return bodies


def shown(body: Body, markup: Markup) -> str:
    """What a person reads, without the blanks of no width that keep marks apart."""
    text = text_of_html(body.markup).text if markup in HTML else body.markup
    return text.replace("\u200b", "")


C40 = """From: Pat <pat@example.org> & **bold* _x <b>y

*   **head**: text
*   other: 2 < 3

| name | says |
|------|------|
| a<b  | c&d  |
"""


@pytest.mark.parametrize("markup", MARKUPS)
def test_c40_all_of_it_is_in_one_message(markup: Markup) -> None:
    (body,) = parts_of(C40, markup)
    text = shown(body, markup)
    if markup == "slack":
        text = re.sub(r"<mailto:[^|]+\|([^>]+)>", r"\1", text)
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    text = text.replace("\\", "")
    for words in ("From: Pat <pat@example.org> & ", "bold", "_x <b>y", "head", ": text", "2 < 3", "a<b", "c&d"):
        assert words in text
        assert words in body.plain
    assert "**bold*" in text
    assert "**bold*" in body.plain


@pytest.mark.parametrize("markup", HTML)
def test_c40_nothing_of_it_is_taken_for_html(markup: Markup) -> None:
    (body,) = parts_of(C40, markup)
    assert "&lt;b&gt;y" in body.markup
    assert "&amp;" in body.markup
    assert "<b>head</b>" in body.markup


def joined(bodies: tuple[Body, ...], markup: Markup) -> str:
    return re.sub(r"\s", "", "".join(shown(body, markup) for body in bodies))


@pytest.mark.parametrize("markup", MARKUPS)
@pytest.mark.parametrize("lines", [1, 30])
def test_c41_a_code_behind_much_prose(markup: Markup, lines: int) -> None:
    prose = ("word " * 780)[:3_899] + "."
    code = "\n".join(f"x{number:03}={'1' * (600 // lines - 6)}" for number in range(lines))
    bodies = parts_of(f"{prose}\n\n```python\n{code}\n```\n\ntail", markup)
    text = re.sub(r"```(python)?", "", joined(bodies, markup))
    assert text == re.sub(r"\s", "", f"{prose}{code}tail")
    assert bodies[-1].plain.endswith("tail")
    if markup in FENCED:
        assert all("```python" in body.markup for body in bodies if "x0" in body.markup)
    if markup in HTML:
        assert "language-python" in bodies[-1].markup


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_a_code_longer_than_a_message_begins_anew_in_each(markup: Markup) -> None:
    code = "\n".join(f"    line({number})" for number in range(900))
    bodies = parts_of(f"See:\n\n```python\n{code}\n```\n\ntail", markup)
    assert len(bodies) >= 3
    for body in bodies:
        assert markup not in FENCED or body.markup.count("```python") == 1
        assert markup not in HTML or body.markup.count("language-python") == 1
    lines = [line for body in bodies for line in body.plain.split("\n") if "line(" in line]
    assert lines == code.split("\n")


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_b_signs_of_two_units_are_not_halved(markup: Markup) -> None:
    bodies = parts_of("\U0001f600" * 2_100, markup)
    assert len(bodies) >= 2
    assert joined(bodies, markup) == "\U0001f600" * 2_100


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_c_an_absurd_info_string_is_shortened(markup: Markup) -> None:
    body = "\n".join("y" * 49 for _ in range(40))
    bodies = parts_of(f"```{'i' * 5_000}\n{body}\n```", markup)
    assert len(bodies) <= 4
    assert joined(bodies, markup).count("y") == 40 * 49


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_d_markup_counts(markup: Markup) -> None:
    row = "| **ab** | **cd** | [ef](https://e.f/g) |\n"
    table = "| A | B | C |\n|---|---|---|\n" + row * (3_900 // len(row))
    bodies = parts_of(table, markup)
    text = joined(bodies, markup)
    assert [text.count(cell) for cell in ("ab", "cd", "ef")] == [3_900 // len(row)] * 3


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_e_a_word_longer_than_a_message(markup: Markup) -> None:
    bodies = parts_of("w" * 9_000, markup)
    assert joined(bodies, markup) == "w" * 9_000
    assert len(bodies) == (5 if markup == "discord" else 3)


@pytest.mark.parametrize("markup", MARKUPS)
def test_c41_f_a_long_text_is_cut_at_the_limit_of_the_platform(markup: Markup) -> None:
    text = "\n\n".join(f"Paragraph {number}. It has *two* sentences." for number in range(116))
    assert len(text) > 4_500
    bodies = parts_of(text, markup)
    traits = traits_of(markup)
    assert len(bodies) >= 2
    assert all(sizes(traits)(body.markup) <= traits.limit for body in bodies)
    assert all(body.plain.startswith("Paragraph") and body.plain.endswith("sentences.") for body in bodies)
    found = [int(number) for body in bodies for number in re.findall(r"Paragraph (\d+)", body.plain)]
    assert found == list(range(116))
