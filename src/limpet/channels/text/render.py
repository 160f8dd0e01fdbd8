"""The text of an answer as the messages of a platform: `render(markdown, traits)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from msgspec.structs import replace

from limpet.channels.text.document import Block, Reading, Span, clean, parse
from limpet.channels.text.html import EMAIL, MATRIX, TELEGRAM
from limpet.channels.text.marks import DISCORD, IRC, MARKDOWN, PLAIN, SLACK, XMPP
from limpet.channels.text.split import Cost, Message, Packer
from limpet.channels.text.table import as_code, as_items, as_source
from limpet.types.channel import ALL, Body, Markup, Traits

LONGEST_INFO = 32
"""Characters of the language that is kept at a fence."""
LONGEST_LINK = 2_000
"""Characters of an address that becomes a link; a longer one is shown as text, which can be cut."""
_NO_INFO = re.compile(r"[^\w+#.\-]")


class Writing(Protocol):
    """One platform's way of writing; `marks` and `html` have them all."""

    @property
    def fences(self) -> bool: ...

    @property
    def schemes(self) -> tuple[str, ...]: ...

    def piece(self, blocks: Sequence[Block]) -> str: ...


WRITINGS: Mapping[Markup, Writing] = MappingProxyType(
    {
        "plain": PLAIN,
        "telegram": TELEGRAM,
        "discord": DISCORD,
        "slack": SLACK,
        "matrix": MATRIX,
        "irc": IRC,
        "xmpp": XMPP,
        "email": EMAIL,
        "markdown": MARKDOWN,
    }
)


def render(markdown: str, traits: Traits) -> tuple[Body, ...]:
    """The messages that show `markdown`, in order, each within `traits.limit` and `traits.lines` as it is sent.

    Both sides of a body are within the limits, so that `plain` can be sent where `markup` is refused. Nothing for a
    blank text. Only a limit that is smaller than one sign with what the markup needs for it (some 40) is passed.
    """
    text = clean(markdown)
    if not text.strip():
        return ()
    writing = WRITINGS[traits.markup]
    blocks = blocks_of(text, traits)
    if traits.markup == "markdown":
        whole = Body(text, PLAIN.piece(blocks))
        if whole.plain.strip() and _fits(whole, traits):
            return (whole,)
    bodies = [_body(writing, message) for message in split(blocks, traits)]
    found = tuple(body for body in bodies if body.plain.strip())
    return found or tuple(_body(writing, message) for message in split((Block("text", (Span(text),)),), traits))


def blocks_of(text: str, traits: Traits) -> tuple[Block, ...]:
    """The blocks of a text that went through `clean`, as the platform can show them."""
    writing = WRITINGS[traits.markup]
    layout = as_source if traits.markup == "markdown" else as_code if writing.fences else as_items
    longest = min(LONGEST_LINK, traits.limit // 4)

    def follows(address: str) -> bool:
        return len(address) <= longest and address.lower().startswith(writing.schemes)

    blocks = parse(text, Reading(layout, follows))
    return tuple(replace(block, info=_info(block.info, traits.limit)) if block.info else block for block in blocks)


def split(blocks: Sequence[Block], traits: Traits) -> list[Message]:
    """The blocks of each message; the text of all of them joined is that of `blocks`."""
    writing, size = WRITINGS[traits.markup], sizes(traits)
    lines = traits.lines or ALL

    def cost(block: Block) -> Cost:
        body = _body(writing, (block,))
        return size(body.markup), size(body.plain), body.markup.count("\n") + 1, body.plain.count("\n") + 1

    packer = Packer(limits=(traits.limit, traits.limit, lines, lines), cost=cost, gap=_gap, bare=_bare)
    return packer.pack(blocks)


def sizes(traits: Traits) -> Callable[[str], int]:
    """Measures a text in the unit of the platform."""
    if traits.unit == "bytes":
        return lambda text: len(text.encode())
    return _utf16 if traits.unit == "utf16" else len


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _fits(body: Body, traits: Traits) -> bool:
    size, lines = sizes(traits), traits.lines or ALL
    return all(size(text) <= traits.limit and text.count("\n") < lines for text in (body.markup, body.plain))


def _body(writing: Writing, message: Sequence[Block]) -> Body:
    shown = [block for block in message if block.opens or not block.spans or _says(block)] or message
    return Body(writing.piece(shown), PLAIN.piece(shown))


def _says(block: Block) -> bool:
    return any(span.text.strip() for span in block.spans)


@lru_cache(maxsize=64)
def _gap_of(quotes: int, tight: bool) -> Cost:
    size = 1 if tight else 2 + quotes * len("&gt; ")
    return size, size, 1 - tight, 1 - tight


def _gap(block: Block) -> Cost:
    """What joining a block to a message adds to the sum of both."""
    return _gap_of(sum(not container.marker for container in block.path), block.tight)


def _bare(block: Block) -> Block:
    return Block("text", tuple(Span(span.text) for span in block.spans))


def _info(info: str, limit: int) -> str:
    """The language a fence names, short enough to be said again in each part."""
    return _NO_INFO.sub("", info.split()[0])[: min(LONGEST_INFO, limit // 16)]
