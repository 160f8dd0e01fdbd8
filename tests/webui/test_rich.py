"""Markdown as a tree of plain data."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from limpet.webui.rich import Node, rich

KINDS = {"p", "h", "code", "hr", "table", "quote", "ul", "ol", "li"}


def kinds(nodes: list[Node]) -> list[object]:
    """The shape of a tree."""
    return [(one.k, kinds(one.nodes)) if one.nodes else one.k for one in nodes]


def test_lists_and_quotes_stand_within_each_other() -> None:
    found = rich("1. one\n2. two\n   - deep\n\n> said\n> - listed\n")
    item = ("li", ["p", ("ul", [("li", ["p"])])])
    assert kinds(found) == [("ol", [("li", ["p"]), item]), ("quote", ["p", ("ul", [("li", ["p"])])])]


def test_two_lists_stay_two_and_a_number_is_kept() -> None:
    found = rich("3. three\n4. four\n\ntext\n\n- a\n- b\n")
    assert [(one.k, one.start, len(one.nodes)) for one in found] == [("ol", 3, 2), ("p", 1, 0), ("ul", 1, 2)]


def test_styles_code_and_tables() -> None:
    text, code, table = rich("**b** *i* `c` ~~s~~\n\n```py x\na < b\n```\n\n| h |\n|---|\n| **v** |\n")
    assert [(bit.t, bit.f) for bit in text.bits if bit.f] == [("b", "b"), ("i", "i"), ("c", "c"), ("s", "s")]
    assert (code.info, code.bits[0].t) == ("py", "a < b")
    assert [[bit.t for cell in row for bit in cell] for row in table.rows] == [["h"], ["v"]]


def test_only_addresses_of_the_web_and_of_mail_are_links() -> None:
    (text,) = rich("[a](https://x.example) [b](javascript:x) [c](/web/logout) [d](data:text/html,x) <m@x.example>")
    assert [bit.l for bit in text.bits if bit.l] == ["https://x.example", "mailto:m@x.example"]


@given(st.text(alphabet=st.sampled_from("ab \n\t#*_`>-1.|[]()<>!\\~&;:/\"'${}"), max_size=200))
def test_any_text_becomes_a_tree_of_known_kinds(text: str) -> None:
    def walk(nodes: list[Node]) -> None:
        for one in nodes:
            assert one.k in KINDS
            walk(one.nodes)

    found = rich(text)
    walk(found)
    assert msgspec.json.encode(found)
