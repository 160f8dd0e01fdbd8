"""Platforms that take marks in plain text: Discord, Slack, XMPP, IRC, Markdown, and none at all. Each is a row of data.

Discord: support.discord.com "Markdown Text 101". Slack: docs.slack.dev "Formatting message text". XMPP: XEP-0393.
IRC: modern.ircdocs.horse/formatting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Literal

from msgspec.structs import replace

from limpet.channels.text.document import Block, Span
from limpet.channels.text.lines import APART, defuse, joined, lines_of, prefixes, quiet_address, trimmed

_WORD = re.compile(r"\w")


def _same(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Marks:
    """How one platform writes. Marks are put on both sides; empty: the style is not shown.

    `escape` takes text, `start` that of a line too, `literal` code. `link` takes text and address; without it the
    address stands behind the text. `hashes`: up to which level headings are written with `#`; others are bold.
    `inside`: how a mark may stand inside a word: as it is, with a blank of no width beside it, or not at all.
    """

    bold: str = ""
    italic: str = ""
    strike: str = ""
    code: str = ""
    bullet: str = "•"
    fences: bool = False
    info: bool = False
    hashes: int = 0
    rule: str = "———"
    inside: Literal["free", "joined", "strict"] = "free"
    schemes: tuple[str, ...] = ("http:", "https:", "mailto:")
    escape: Callable[[str], str] = _same
    start: Callable[[str], str] = _same
    literal: Callable[[str], str] = _same
    link: Callable[[str, str], str] | None = None
    longer_fence: bool = False

    def piece(self, blocks: Sequence[Block]) -> str:
        """The text of one message."""
        return joined(blocks, [self._block(trimmed(block)) for block in blocks], "> ")

    def _block(self, block: Block) -> str:
        first, rest = prefixes(block, "> ", lambda marker: f"{self.bullet if marker == '-' else marker} ")
        lines = self._lines(block)
        return "\n".join((rest if number else first) + line for number, line in enumerate(lines)) or first

    def _lines(self, block: Block) -> list[str]:
        if block.kind == "code":
            return self._code("".join(span.text for span in block.spans), block.info)
        if block.kind == "rule":
            return [self.rule]
        if block.kind == "verbatim":
            return "".join(span.text for span in block.spans).split("\n")
        spans = block.spans
        hashes = "#" * block.level + " " if 0 < block.level <= self.hashes else ""
        if block.kind == "heading" and not hashes:
            spans = tuple(replace(span, bold=True) for span in spans)
        return [hashes + defuse(self._line(line)) for line in lines_of(spans)]

    def _code(self, code: str, info: str) -> list[str]:
        if not self.fences:
            return [defuse(line) for line in code.split("\n")]
        fence = "```"
        if self.longer_fence:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        else:
            code = code.replace("```", f"`{APART}`{APART}`")
        return [fence + (info if self.info else ""), *map(defuse, self.literal(code).split("\n")), fence]

    def _line(self, spans: Sequence[Span]) -> str:
        """One line; a link in several styles is named once where its address stands behind it."""
        out = ""
        for place, span in enumerate(spans):
            last = place + 1 == len(spans) or spans[place + 1].link != span.link
            body = span.text.strip()
            left, right = span.text[: len(span.text) - len(span.text.lstrip())], span.text[len(span.text.rstrip()) :]
            if not body:
                out += span.text
                continue
            follows = "" if right or place + 1 == len(spans) else spans[place + 1].text[:1]
            out += left
            out = self._put(out, replace(span, text=body), follows)
            if last and span.link and self.link is None and _label(spans, place) != span.link.removeprefix("mailto:"):
                out += f" ({quiet_address(span.link.removeprefix('mailto:'))})"
            out += right
        return out

    def _put(self, out: str, span: Span, follows: str) -> str:
        """`out` with a span that has no space at its edges; `follows` is the character after it."""
        code = self.code if span.code and not (span.link and self.link) else ""
        marks = (self.bold if span.bold else "") + (self.italic if span.italic else "")
        marks += self.strike if span.strike else ""
        if self.inside == "strict" and out and not out[-1].isspace():
            marks = code = ""
        text = self._coded(span.text, code) if code else self.escape(span.text)
        if not out and not marks and not code:
            text = self.start(text)
        if span.link and self.link is not None:
            text = self.link(text, quiet_address(span.link))
        whole = marks + text + marks[::-1]
        marked = bool(marks or code)
        if marked and out and (out[-1] == whole[0] or (self.inside == "joined" and _WORD.match(out[-1]))):
            out += APART
        joint = marked and self.inside == "joined" and _WORD.match(follows)
        return out + whole + (APART if joint else "")

    def _coded(self, text: str, code: str) -> str:
        if code != "`" or "`" not in text:
            return code + self.literal(text) + code
        if self.inside != "free":
            return self.escape(text)
        ticks = "`" * (1 + max(map(len, re.findall("`+", text))))
        return f"{ticks} {text} {ticks}"


def _label(spans: Sequence[Span], place: int) -> str:
    """The whole text of the link that ends with the span at `place`."""
    start = place
    while start and spans[start - 1].link == spans[place].link:
        start -= 1
    return "".join(span.text for span in spans[start : place + 1])


_ADDRESS = r"https?://[^\s<>]+"
_DISCORD = re.compile(_ADDRESS + r"|([\\*_~`|\[\]])")
_MARKDOWN = re.compile(_ADDRESS + r"|([\\*_~`|\[\]<&])")
_START = re.compile(r"(?=(?:#{1,6}|-#|[-+=]|>+)(?:[\s\-=>]|$))|(?<=\d)(?=[.)](?:\s|$))")
_SLACK = re.compile(_ADDRESS + r"|(?<!\w)([*_~`]+)(?=\S)")
_XMPP = re.compile(_ADDRESS + r"|((?<!\S)[*_~`]+(?=\S))")
_QUOTE = re.compile(r"(?=>|&gt;|```)")


def _backslash(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else found[0]


def _discord(text: str) -> str:
    return _DISCORD.sub(_backslash, text)


def _markdown(text: str) -> str:
    return _MARKDOWN.sub(_backslash, text)


def _slack(text: str) -> str:
    """A mark that could begin a style is followed by a blank of no width."""
    return _entities(_SLACK.sub(lambda found: "".join(one + APART for one in found[1]) if found[1] else found[0], text))


def _entities(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _xmpp(text: str) -> str:
    """A mark that could begin a style has a blank of no width before it."""
    return _XMPP.sub(lambda found: APART + found[1] if found[1] else found[0], text)


def _bracketed(text: str, address: str) -> str:
    if text.replace("\\", "") == address:
        return address
    return f"[{text}]({address.replace('(', '%28').replace(')', '%29')})"


def _apart_at_start(text: str) -> str:
    return APART + text if _QUOTE.match(text) else text


def _slash_at_start(text: str) -> str:
    found = _START.match(text) or re.match(r"\d{1,9}(?=[.)](?:\s|$))", text)
    return f"{text[: found.end()]}\\{text[found.end() :]}" if found else text


DISCORD = Marks(
    bold="**",
    italic="*",
    strike="~~",
    code="`",
    bullet="-",
    fences=True,
    info=True,
    hashes=3,
    schemes=("http:", "https:"),
    escape=_discord,
    start=_slash_at_start,
    link=_bracketed,
)
MARKDOWN = changed(
    DISCORD,
    hashes=6,
    rule="---",
    longer_fence=True,
    schemes=("http:", "https:", "mailto:"),
    escape=_markdown,
)
SLACK = Marks(
    bold="*",
    italic="_",
    strike="~",
    code="`",
    fences=True,
    inside="joined",
    escape=_slack,
    start=_apart_at_start,
    literal=_entities,
    link=lambda text, address: f"<{_entities(address)}|{text}>",
)
XMPP = Marks(
    bold="*",
    italic="_",
    strike="~",
    code="`",
    bullet="-",
    fences=True,
    info=True,
    inside="strict",
    escape=_xmpp,
    start=_apart_at_start,
)
IRC = Marks(bold="\x02", italic="\x1d", strike="\x1e", code="\x11")
PLAIN = Marks(bullet="-")
