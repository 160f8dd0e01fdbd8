"""Reads what was written for a platform back, as strictly as the platform does."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from limpet.channels.text.document import Block
from limpet.channels.text.render import sizes
from limpet.types.channel import Body, Markup, Traits

MARKUPS: tuple[Markup, ...] = (
    "plain",
    "telegram",
    "discord",
    "slack",
    "matrix",
    "irc",
    "xmpp",
    "email",
    "markdown",
)
HTML = ("telegram", "matrix", "email")
FENCED = ("discord", "slack", "xmpp", "markdown")
TELEGRAM_TAGS = frozenset(("b", "i", "s", "a", "code", "pre", "blockquote"))


class Strict(HTMLParser):
    """Text of HTML; fails for a tag that is not closed, or closed out of order, and for a bare `&`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert not re.search("[<>&]", data), data
        self.text += data

    def handle_entityref(self, name: str) -> None:
        self.text += {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}[name]


def text_of_html(markup: str) -> Strict:
    strict = Strict()
    strict.feed(markup)
    strict.close()
    assert not strict.open
    return strict


def check(body: Body, traits: Traits) -> None:
    """A body is within its limits as sent, whole in its markup, and not empty."""
    size = sizes(traits)
    for text in (body.markup, body.plain):
        assert size(text) <= traits.limit, (size(text), text[:200])
        assert not traits.lines or text.count("\n") < traits.lines
        assert text.strip()
        text.encode()  # no half of a character
    if traits.markup in HTML:
        tags = text_of_html(body.markup).tags
        assert traits.markup != "telegram" or tags <= TELEGRAM_TAGS
    elif traits.markup in FENCED:
        fences = re.findall(r"^[> \-\u2022\d.]*(`{3,})[\w+#.\-]*$", body.markup, re.MULTILINE)
        assert len(fences) % 2 == 0, body.markup


def said(blocks: tuple[Block, ...]) -> str:
    return "".join(span.text for block in blocks for span in block.spans)
