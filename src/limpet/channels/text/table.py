"""Tables: aligned columns where lines of code are shown in one width, else an item for each row."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from limpet.channels.text.document import Block, Container, Span, Table

WIDEST = 60
"""Columns of a table that is shown as code; phones break what is much wider."""
_ROW = -1
"""Key of the list of a table's rows; tables never stand next to each other within one list."""


def as_code(table: Table) -> tuple[Block, ...]:
    """Columns one below the other, or items where they are too wide or hold links."""
    if any(span.link or "\n" in span.text for row in table.rows for cell in row for span in cell):
        return as_items(table)
    rows = [[_text(cell) for cell in row] for row in table.rows]
    widths = [max(map(width, column)) for column in zip(*rows, strict=False)]
    if sum(widths) + 3 * (len(widths) - 1) > WIDEST:
        return as_items(table)
    lines = [_line(row, widths, table.aligned) for row in rows]
    lines.insert(1, "-+-".join("-" * wide for wide in widths))
    return (Block("code", (Span("\n".join(lines)),)),)


def as_items(table: Table) -> tuple[Block, ...]:
    """An item for each row, in it a line `**Head**: cell` for each cell."""
    head, *rows = table.rows
    if not rows:
        return (Block("text", tuple(_between(head, Span(" | ")))),)
    blocks: list[Block] = []
    for number, row in enumerate(rows):
        lines = [
            (*(replace(span, bold=True) for span in name), Span(": " if _text(name) else ""), *cell)
            for name, cell in zip(head, row, strict=False)
            if _text(name) or _text(cell)
        ]
        item = Container(_ROW - number, _ROW, "-")
        spans = tuple(_between(lines, Span("\n")))
        blocks.append(Block("text", spans, path=(item,), opens=1, tight=number > 0))
    return tuple(blocks)


def as_source(table: Table) -> tuple[Block, ...]:
    """As it is written in Markdown."""
    rows = ["| " + " | ".join("".join(map(_source, cell)) for cell in row) + " |" for row in table.rows]
    rules = {"left": "---", "center": ":-:", "right": "--:"}
    rows.insert(1, "| " + " | ".join(rules.get(side, "---") for side in table.aligned) + " |")
    return (Block("verbatim", (Span("\n".join(rows)),)),)


def width(text: str) -> int:
    """Columns that `text` takes where every character has one width or two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def _source(span: Span) -> str:
    text = span.text.replace("|", "\\|")
    if span.link:
        return f"[{text}]({span.link.replace('|', '%7C')})"
    mark = "`" if span.code else "**" if span.bold else "*" if span.italic else "~~" if span.strike else ""
    return f"{mark}{text}{mark}" if text.strip() == text else text


def _line(row: Sequence[str], widths: Sequence[int], aligned: Sequence[str]) -> str:
    cells: list[str] = []
    for text, wide, side in zip(row, widths, aligned, strict=False):
        free = wide - width(text)
        left = free if side == "right" else free // 2 if side == "center" else 0
        cells.append(" " * left + text + " " * (free - left))
    return " | ".join(cells).rstrip()


def _text(cell: Iterable[Span]) -> str:
    return "".join(span.text for span in cell)


def _between(cells: Iterable[Iterable[Span]], separator: Span) -> list[Span]:
    found: list[Span] = []
    for cell in cells:
        found += ([separator] if found else []) + list(cell)
    return found
