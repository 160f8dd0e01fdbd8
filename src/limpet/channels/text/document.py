"""Markdown as a row of blocks: what all renderers write and the splitter cuts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

DEEPEST = 40
"""Nesting of blocks; markdown-it leaves out what is deeper, so a text that deep is taken as it stands."""
MANY_BRACKETS = 5_000
"""With more of them no links are looked for: that takes time by their number and nesting."""
PATH = 8
"""Quotes and lists a block is shown within; what is deeper stands at the eighth."""
RULE = "———"

_PIPE = re.compile(r"(?<!\\)\|")
_UNSENDABLE = re.compile(r"[\ud800-\udfff]|[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")


class Span(Struct, frozen=True, gc=False):
    """Text of one style; `link`: the address it leads to."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    link: str = ""


class Container(Struct, frozen=True):
    """A quote (`marker` empty) or an item of a list; items of one list share `row`."""

    key: int
    row: int = 0
    marker: str = ""


class Block(Struct, frozen=True):
    """One paragraph, heading, piece of code or rule. The last `opens` of `path` begin with it.

    `tight`: no blank line stands before it. `info` is what the fence of a code says, `level` that of a heading.
    """

    kind: Literal["text", "heading", "code", "rule", "verbatim"]
    spans: tuple[Span, ...]
    path: tuple[Container, ...] = ()
    opens: int = 0
    tight: bool = False
    level: int = 0
    info: str = ""


class Table(Struct, frozen=True):
    """Rows of cells, the head first. `aligned` is `left`, `center` or `right` for each column."""

    rows: tuple[tuple[tuple[Span, ...], ...], ...]
    aligned: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """`layout` gives the blocks that a table is shown as, their `path` below that of the table.

    `follows`: whether an address becomes a link; others are shown as text.
    """

    layout: Callable[[Table], Sequence[Block]]
    follows: Callable[[str], bool]


def clean(text: str) -> str:
    """`text` without halves of characters and control characters, which no platform takes; each becomes U+FFFD."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _UNSENDABLE.search(text) is None:
        return text
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _UNSENDABLE.sub("\ufffd", text)


def parse(text: str, reading: Reading) -> tuple[Block, ...]:
    """The blocks of a Markdown text that went through `clean`. No character is lost but those of the markup itself."""
    tokens = _parser(links=text.count("[") <= MANY_BRACKETS).parse(text)
    if any(token.level >= DEEPEST - 2 for token in tokens):
        return tuple(Block("text", (Span(part),)) for part in re.split(r"\n{2,}", text) if part.strip())
    return tuple(_Builder(reading, text.split("\n")).blocks(tokens))


@cache
def _parser(*, links: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt  # 40 ms, and only needed by who sends to a platform

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    return parser.disable(["reference", "html_block", "html_inline"] + ([] if links else ["link", "image"]))


@dataclass(slots=True)
class _List:
    row: int
    ordered: bool
    items: int = 0
    number: int = 0

    def next(self, written: str) -> str:
        """The mark of the next item, whose number is `written`: as written, unless it does not go up."""
        self.items += 1
        if not self.ordered:
            return "-"
        self.number = max(int(written), self.number + 1) if self.items > 1 else int(written)
        return f"{self.number}."


@dataclass(slots=True)
class _Builder:
    reading: Reading
    source: list[str]
    path: list[Container] = field(default_factory=list[Container])
    lists: list[_List] = field(default_factory=list[_List])
    keys: int = 0
    shown: int = 0
    """How many of `path` have a block."""

    def blocks(self, tokens: Sequence[Token]) -> Iterator[Block]:
        hidden = False
        heading = 0
        place = 0
        while place < len(tokens):
            token = tokens[place]
            if token.type == "table_open":
                end = place + next(n for n, one in enumerate(tokens[place:]) if one.type == "table_close")
                yield from self._table(tokens[place:end])
                place = end
            elif token.type in ("paragraph_open", "heading_open"):
                hidden = token.hidden
                heading = int(token.tag[1:]) if token.type == "heading_open" else 0
            elif token.type == "inline":
                yield self._inline(token, heading=heading, tight=hidden)
            elif token.type in ("fence", "code_block"):
                code = token.content.removesuffix("\n")
                yield self._placed(Block("code", (Span(code),) if code else (), info=token.info.strip()))
            elif token.type == "hr":
                yield self._placed(Block("rule", (Span(RULE),)))
            else:
                yield from self._contained(token)
            place += 1

    def _contained(self, token: Token) -> Iterator[Block]:
        """Opens and closes quotes and lists; an item without content is a block all the same."""
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self.keys += 1
            self.lists.append(_List(self.keys, token.type == "ordered_list_open"))
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self.lists.pop()
        elif token.type == "list_item_open":
            row = self.lists[-1]
            self._open(row.row, row.next(token.info))
        elif token.type == "blockquote_open":
            self._open(0, "")
        elif token.type in ("list_item_close", "blockquote_close"):
            if self.shown < len(self.path):
                yield self._placed(Block("text", (), tight=True))
            self.path.pop()
            self.shown = min(self.shown, len(self.path))

    def _open(self, row: int, marker: str) -> None:
        self.keys += 1
        self.path.append(Container(self.keys, row, marker))

    def _inline(self, token: Token, *, heading: int, tight: bool) -> Block:
        spans = tuple(spans_of(token.children or (), self.reading.follows))
        if heading:
            spans = tuple(replace(span, text=span.text.replace("\n", " ")) for span in spans)
            return self._placed(Block("heading", spans, level=heading))
        follows = bool(self.lists) and (len(self.lists) > 1 or self.lists[-1].items > 1)
        return self._placed(Block("text", spans, tight=tight and follows))

    def _placed(self, block: Block) -> Block:
        opens = len(self.path) - self.shown
        self.shown = len(self.path)
        return replace(block, path=tuple(self.path[:PATH]), opens=max(0, min(opens, opens - len(self.path) + PATH)))

    def _table(self, tokens: Sequence[Token]) -> Iterator[Block]:
        rows: list[tuple[tuple[Span, ...], ...]] = []
        cells: list[tuple[Span, ...]] = []
        aligned: list[str] = []
        line = ""
        for token in tokens:
            if token.type == "tr_open" and token.map:
                line = self.source[token.map[0]]
            elif token.type == "tr_close":
                rows.append((*cells[:-1], (*cells[-1], *_surplus(line, len(cells)))))
                cells = []
            elif token.type == "th_open":
                aligned.append(str(token.attrs.get("style", "text-align:left")).partition(":")[2])
            elif token.type == "inline":
                cells.append(tuple(spans_of(token.children or (), self.reading.follows)))
        for block in self.reading.layout(Table(tuple(rows), tuple(aligned))):
            placed = self._placed(replace(block, path=()))
            yield replace(placed, path=placed.path + block.path, opens=placed.opens + block.opens)


def _surplus(line: str, columns: int) -> tuple[Span, ...]:
    """What a row has beyond the columns of its table, which Markdown leaves out."""
    cells = [cell.strip() for cell in _PIPE.split(line.strip(" \t>"))]
    cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return tuple(Span(f" | {cell}") for cell in cells[columns:] if cell)


def spans_of(tokens: Sequence[Token], follows: Callable[[str], bool]) -> Iterator[Span]:
    """The text within a block by style, neighbours of one style joined."""
    gathered: list[Span] = []
    for span in _Inline(follows).spans(tokens):
        if gathered and replace(gathered[0], text="") != replace(span, text=""):
            yield _joined(gathered)
            gathered.clear()
        if span.text:
            gathered.append(span)
    if gathered:
        yield _joined(gathered)


def _joined(spans: list[Span]) -> Span:
    return spans[0] if len(spans) == 1 else replace(spans[0], text="".join(span.text for span in spans))


_TURNS = {"strong_open": 1, "strong_close": -1, "em_open": 1, "em_close": -1, "s_open": 1, "s_close": -1}


@dataclass(slots=True)
class _Inline:
    """Reads the tokens within a block; the numbers are how often a style is open."""

    follows: Callable[[str], bool]
    strong: int = 0
    em: int = 0
    s: int = 0
    href: str = ""
    title: str = ""
    label: list[str] = field(default_factory=list[str])

    def spans(self, tokens: Sequence[Token]) -> Iterator[Span]:
        odd = _uneven(tokens)
        for place, token in enumerate(tokens):
            if place in odd:
                yield self._span(token.markup)
            elif token.type in _TURNS:
                self._turn(token)
            elif token.type in ("softbreak", "hardbreak"):
                yield self._span("\n")
            elif token.type == "code_inline":
                yield self._span(token.content, code=True)
            elif token.type == "image":
                yield from self._image(token)
            elif token.type == "link_open":
                self._into(token, "href")
                if self._is_mail(token):
                    yield Span("<")
            elif token.type == "link_close":
                mail = self._is_mail(token)
                yield from self._out()
                if mail:
                    yield Span(">")
            else:
                yield self._span(token.content)

    def _turn(self, token: Token) -> None:
        step = _TURNS[token.type]
        if token.type.startswith("strong"):
            self.strong += step
        elif token.type.startswith("em"):
            self.em += step
        else:
            self.s += step

    def _span(self, text: str, *, code: bool = False) -> Span:
        if self.href:
            self.label.append(text)
        link = self.href if self.href and self.follows(self.href) else ""
        return Span(text, self.strong > 0, self.em > 0, self.s > 0, code, link)

    def _into(self, token: Token, where: str) -> None:
        self.href, self.title = str(token.attrs.get(where, "")), str(token.attrs.get("title", ""))
        self.label.clear()

    def _out(self) -> Iterator[Span]:
        """What a link shows beside its text: the title, and an address that nothing leads to."""
        href, title = self.href, self.title
        label = "".join(self.label)
        self.href = ""
        beside = [] if not href or self.follows(href) or label == href.removeprefix("mailto:") else [href]
        beside += [title] if title else []
        if beside:
            yield self._span(f" ({', '.join(beside)})")

    def _is_mail(self, token: Token) -> bool:
        """Whether a link is `<name@host>`, whose brackets are part of what people write, as in `From: Pat <…>`."""
        return token.info == "auto" and self.href.startswith("mailto:")

    def _image(self, token: Token) -> Iterator[Span]:
        """A picture is a link to it, and stays part of the link that it stands in."""
        alt = token.content or str(token.attrs.get("src", ""))
        if self.href:
            yield self._span(f"{alt} ({token.attrs.get('src', '')})" if token.content else alt)
            return
        self._into(token, "src")
        yield self._span(alt)
        yield from self._out()


def _uneven(tokens: Sequence[Token]) -> set[int]:
    """Places of emphasis that was hardly meant, as in `**bold*`: its marks are shown, not taken for markup."""
    found: set[int] = set()
    opened: list[int] = []
    for place, token in enumerate(tokens):
        step = _TURNS.get(token.type, 0)
        if step > 0:
            opened.append(place)
        elif step < 0 and opened:
            start = opened.pop()
            before = tokens[start - 1].content if start else ""
            after = tokens[place + 1].content if place + 1 < len(tokens) else ""
            mark = token.markup[:1]
            if before.endswith(mark) or after.startswith(mark):
                found |= {start, place}
    return found
