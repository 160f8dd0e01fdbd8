"""What all ways of writing share: lines of spans, prefixes of quotes and lists, mentions of everybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from limpet.channels.text.document import Block, Span

APART = "\u200b"
"""Zero width: keeps two characters from being read as one mark."""

_EVERYBODY = re.compile(r"@(?=(?:everyone|here|channel|room|all|group)\b)|(?<=<)@(?=&)", re.IGNORECASE)
_EVERYBODY_COMMAND = re.compile(r"<!(?=(?:everyone|here|channel|subteam))", re.IGNORECASE)


def defuse(text: str) -> str:
    """`text` with mentions of everybody, or of a role, that platforms take for text only."""
    if "@" in text:
        text = _EVERYBODY.sub("@" + APART, text)
    if "<!" in text:
        text = _EVERYBODY_COMMAND.sub("<" + APART + "!", text)
    return text


def quiet_address(address: str) -> str:
    """`address` without a sign that could name everybody or end the markup around it."""
    address = _EVERYBODY.sub("%40", address)
    return re.sub(r"[\s<>\"|\\]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), address)


def lines_of(spans: Sequence[Span]) -> list[list[Span]]:
    """The spans of each line."""
    lines: list[list[Span]] = [[]]
    for span in spans:
        first, *others = span.text.split("\n")
        if first:
            lines[-1].append(replace(span, text=first) if others else span)
        for text in others:
            lines.append([replace(span, text=text)] if text else [])
    return lines


def trimmed(block: Block) -> Block:
    """A block, or a part of one, without the space at its edges; of code only without its last line end."""
    if block.kind in ("code", "verbatim"):
        if not block.spans or not block.spans[-1].text.endswith("\n"):
            return block
        last = replace(block.spans[-1], text=block.spans[-1].text[:-1])
        return replace(block, spans=(*block.spans[:-1], last))
    spans = list(block.spans)
    while spans and not spans[0].text.strip():
        del spans[0]
    while spans and not spans[-1].text.strip():
        del spans[-1]
    if not spans:
        return replace(block, spans=())
    spans[0] = replace(spans[0], text=spans[0].text.lstrip())
    spans[-1] = replace(spans[-1], text=spans[-1].text.rstrip())
    return replace(block, spans=tuple(spans))


def prefixes(block: Block, quote: str, marker: Callable[[str], str]) -> tuple[str, str]:
    """What stands before the first line of a block and before each other."""
    first = rest = ""
    new = len(block.path) - block.opens
    for place, container in enumerate(block.path):
        if not container.marker:
            first += quote
            rest += quote
            continue
        shown = marker(container.marker)
        first += shown if place >= new else " " * len(shown)
        rest += " " * len(shown)
    return first, rest


def joined(blocks: Sequence[Block], written: Sequence[str], quote: str) -> str:
    """The blocks of one message below each other, a blank line between them where they are not tight."""
    if not blocks:
        return ""
    parts = [written[0]]
    for (before, block), text in zip(pairwise(blocks), written[1:], strict=True):
        if block.tight:
            parts.append("\n")
        else:
            depth = _shared_quotes(before, block)
            parts.append(f"\n{(quote * depth).rstrip()}\n")
        parts.append(text)
    return "".join(parts)


def _shared_quotes(before: Block, block: Block) -> int:
    """How many quotes both stand in, before any list: the blank line between them stays in those."""
    depth = 0
    for one, other in zip(before.path, block.path, strict=False):
        if one.marker or one.key != other.key:
            break
        depth += 1
    return depth
