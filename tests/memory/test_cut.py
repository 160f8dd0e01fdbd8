"""Cutting Markdown into passages."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.cut import SIZE, parts, pieces, tokens
from limpet.memory.dates import EPOCH


def test_bullets_and_paragraphs_are_passages_with_their_lines() -> None:
    found = pieces("# Home\n\n- tea\n  green\n- milk\n\nA paragraph\nof two lines.\n")
    assert [(one.text, one.first, one.last) for one in found] == [
        ("- tea\n  green", 3, 4),
        ("- milk", 5, 5),
        ("A paragraph\nof two lines.", 7, 8),
    ]


def test_headings_the_day_and_the_entry_before_are_the_context() -> None:
    _, second = pieces("# Notes\n## Garden\n- roses\n- tulips\n", path="memory/2026-05-07.md")
    assert second.context == "[07 May 2026]\nNotes > Garden\n- roses"
    assert second.day == date(2026, 5, 7).toordinal() - EPOCH


def test_a_heading_gives_its_day_to_what_stands_below() -> None:
    first, second = pieces("## 2026-05-07\n- a\n## Later\n- b\n")
    assert (first.day > 0, second.day) == (True, -1)


def test_a_heading_with_nothing_below_is_a_passage() -> None:
    assert [one.text for one in pieces("# Decided: PostgreSQL\n# Other\ntext\n# Last")] == [
        "# Decided: PostgreSQL",
        "text",
        "# Last",
    ]


def test_a_code_block_stays_whole() -> None:
    (found,) = pieces("Run:\n```sh\n# no heading\n\n- no bullet\n```\n")
    assert (found.first, found.last) == (1, 6)


def test_what_is_long_is_cut_and_overlaps() -> None:
    lines = [f"line {number} " + "word " * 20 for number in range(60)]
    found = pieces("\n".join(lines))
    assert len(found) > 3
    assert all(tokens(one.text) <= SIZE for one in found)
    assert all(later.first <= earlier.last for earlier, later in pairwise(found))


def test_chinese_counts_by_the_character() -> None:
    assert all(len(part) <= SIZE for part in parts("字" * 3_000))


@given(st.text(alphabet="ab #-`\n\t1字", max_size=400), st.sampled_from(["", "memory/2026-01-01.md"]))
def test_no_line_with_text_is_lost(text: str, path: str) -> None:
    covered = {number for one in pieces(text, path=path) for number in range(one.first, one.last + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            assert number in covered
