"""Markdown for the page: a tree of plain data that the browser makes elements of. No HTML is ever written."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from limpet.channels.text.document import Block, Container, Reading, Span, Table, clean, parse

SCHEMES = ("http://", "https://", "mailto:")
LONGEST_LINK = 2_000


class Bit(Struct, omit_defaults=True):
    """Text of one style: `f` has any of b(old), i(talic), s(truck), c(ode); `l` is where it leads to."""

    t: str
    f: str = ""
    l: str = ""  # noqa: E741 (short: there are thousands of them)


class Node(Struct, omit_defaults=True, kw_only=True):
    """A block: `k` is p, h, code, hr, table, quote, ul, ol or li; `info` what the fence of a code says."""

    k: str
    bits: list[Bit] = []
    nodes: list[Node] = []
    rows: list[list[list[Bit]]] = []
    level: int = 0
    start: int = 1
    info: str = ""
    row: int = 0


def rich(text: str) -> list[Node]:
    """The blocks of a Markdown text."""
    tables: list[Table] = []

    def layout(table: Table) -> Sequence[Block]:
        tables.append(table)
        return (Block("verbatim", (), info=str(len(tables) - 1)),)

    root = Node(k="root")
    open_: list[tuple[int, Node]] = []
    for block in parse(clean(text), Reading(layout, _follows)):
        shared = 0
        while shared < min(len(open_), len(block.path)) and open_[shared][0] == block.path[shared].key:
            shared += 1
        del open_[shared:]
        for container in block.path[shared:]:
            parent = open_[-1][1] if open_ else root
            open_.append((container.key, _opened(parent, container)))
        (open_[-1][1] if open_ else root).nodes.append(_leaf(block, tables))
    return root.nodes


def _follows(address: str) -> bool:
    return len(address) <= LONGEST_LINK and address.lower().startswith(SCHEMES)


def _opened(parent: Node, container: Container) -> Node:
    """A quote, or an item of a list, below `parent`."""
    if not container.marker:
        parent.nodes.append(Node(k="quote"))
        return parent.nodes[-1]
    last = parent.nodes[-1] if parent.nodes else None
    if last is None or last.row != container.row:
        number = container.marker.rstrip(".")
        numbered = number.isdecimal()
        last = Node(k="ol" if numbered else "ul", start=int(number) if numbered else 1, row=container.row)
        parent.nodes.append(last)
    last.nodes.append(Node(k="li"))
    return last.nodes[-1]


def _leaf(block: Block, tables: Sequence[Table]) -> Node:
    match block.kind:
        case "verbatim":
            rows = [[_bits(cell) for cell in row] for row in tables[int(block.info)].rows]
            return Node(k="table", rows=rows)
        case "code":
            return Node(k="code", bits=_bits(block.spans), info=block.info.partition(" ")[0][:40])
        case "rule":
            return Node(k="hr")
        case "heading":
            return Node(k="h", bits=_bits(block.spans), level=block.level)
        case _:
            return Node(k="p", bits=_bits(block.spans))


def _bits(spans: Sequence[Span]) -> list[Bit]:
    return [Bit(span.text, _flags(span), span.link) for span in spans]


def _flags(span: Span) -> str:
    return "".join(
        mark for mark, is_so in zip("bisc", (span.bold, span.italic, span.strike, span.code), strict=True) if is_so
    )
