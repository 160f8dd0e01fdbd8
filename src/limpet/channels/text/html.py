"""Platforms that take HTML: Telegram a few tags and line ends as they are, Matrix and mail real paragraphs and lists.

Telegram: core.telegram.org/bots/api#html-style. Matrix: the tags of `org.matrix.custom.html` in its client-server API.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from msgspec.structs import replace

from limpet.channels.text.document import Block, Container, Span
from limpet.channels.text.lines import defuse, joined, lines_of, prefixes, quiet_address, trimmed


def escaped(text: str) -> str:
    return defuse(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def styled(spans: Sequence[Span], strike: str) -> str:
    """One line. Each span has tags of its own, so that they are balanced wherever a text is cut."""
    out: list[str] = []
    for span in spans:
        text = escaped(span.text)
        if span.code and not span.link:
            text = f"<code>{text}</code>"
        if span.strike:
            text = f"<{strike}>{text}</{strike}>"
        if span.italic:
            text = f"<i>{text}</i>"
        if span.bold:
            text = f"<b>{text}</b>"
        out.append(f'<a href="{escaped(quiet_address(span.link))}">{text}</a>' if span.link else text)
    return "".join(out)


def code(block: Block) -> str:
    text = escaped("".join(span.text for span in block.spans))
    if not block.info:
        return f"<pre>{text}</pre>"
    return f'<pre><code class="language-{escaped(block.info)}">{text}</code></pre>'


@dataclass(frozen=True, slots=True)
class Telegram:
    """Lists and headings are text; one level of quotes is a tag, deeper ones `>`. Code stands outside of quotes."""

    fences: bool = True
    schemes: tuple[str, ...] = ("http:", "https:", "mailto:", "tg:")

    def piece(self, blocks: Sequence[Block]) -> str:
        """The HTML of one message."""
        parts: list[str] = []
        for quote, group in groupby(blocks, _outer_quote):
            inner = [_within(block) if quote else block for block in group]
            text = joined(inner, [self._block(trimmed(block)) for block in inner], "&gt; ")
            if parts:
                parts.append("\n" if inner[0].tight else "\n\n")
            parts.append(f"<blockquote>{text}</blockquote>" if quote else text)
        return "".join(parts)

    def _block(self, block: Block) -> str:
        first, rest = prefixes(block, "&gt; ", lambda marker: f"{'•' if marker == '-' else marker} ")
        if block.kind == "code":
            return (f"{first.rstrip()}\n" if first.strip() else "") + code(block)
        lines = [styled(line, "s") for line in lines_of(_bold_heading(block))]
        return "\n".join((rest if number else first) + line for number, line in enumerate(lines))


def _outer_quote(block: Block) -> int:
    """The key of the quote that a block stands in; 0 outside."""
    quoted = block.kind != "code" and bool(block.path) and not block.path[0].marker
    return block.path[0].key if quoted else 0


def _within(block: Block) -> Block:
    return replace(block, path=block.path[1:], opens=min(block.opens, len(block.path) - 1))


def _bold_heading(block: Block) -> tuple[Span, ...]:
    if block.kind != "heading":
        return block.spans
    return tuple(replace(span, bold=True) for span in block.spans)


@dataclass(frozen=True, slots=True)
class Page:
    """Paragraphs, lists, quotes and headings as tags; `strike` is the tag for what is struck out."""

    strike: str
    fences: bool = True
    schemes: tuple[str, ...] = ("http:", "https:", "mailto:")

    def piece(self, blocks: Sequence[Block]) -> str:
        """The HTML of one message."""
        out: list[str] = []
        path: tuple[Container, ...] = ()
        for block in blocks:
            self._move(out, path, block.path)
            path = block.path
            out.append(self._block(trimmed(block)))
        self._move(out, path, ())
        return "".join(out)

    def _move(self, out: list[str], path: tuple[Container, ...], to: tuple[Container, ...]) -> None:
        """Close what is left and open what is entered; items of one list stay in it."""
        same = 0
        while same < min(len(path), len(to)) and path[same].key == to[same].key:
            same += 1
        stays = same < min(len(path), len(to)) and path[same].marker != "" and path[same].row == to[same].row
        for place in range(len(path) - 1, same - 1, -1):
            out.append("</li>" if stays and place == same else _close(path[place]))
        for place in range(same, len(to)):
            out.append("<li>" if stays and place == same else _open(to[place]))

    def _block(self, block: Block) -> str:
        if block.kind == "code":
            return code(block)
        if block.kind == "rule":
            return "<hr>"
        text = "<br>".join(styled(line, self.strike) for line in lines_of(block.spans))
        if block.kind == "heading":
            return f"<h{block.level}>{text}</h{block.level}>"
        return text if block.path and block.path[-1].marker and block.opens else f"<p>{text}</p>"


def _open(container: Container) -> str:
    if not container.marker:
        return "<blockquote>"
    if container.marker == "-":
        return "<ul><li>"
    number = container.marker[:-1]
    return "<ol><li>" if number == "1" else f'<ol start="{number}"><li>'


def _close(container: Container) -> str:
    if not container.marker:
        return "</blockquote>"
    return "</li></ul>" if container.marker == "-" else "</li></ol>"


TELEGRAM = Telegram()
MATRIX = Page("del")
EMAIL = Page("s")
