"""Entries of memory files: what they say of themselves, which of them a rewrite loses."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from limpet.memory.entries import entries_of, id_of, lost, marked, named, normal, one_line, too_many

TEXT = """# Memory

<!-- a comment -->
## Tea

- Likes tea <!-- 2026-11-30 14:02 said -->
- Milk first,
  then sugar
Owner's own paragraph
over two lines

```
# code, no heading

- no item
```
"""


def test_entries_carry_heading_time_source_and_trust() -> None:
    found = entries_of(TEXT, "MEMORY.md")
    assert [one.text.split("\n")[0] for one in found] == ["Likes tea", "Milk first,", "```"]
    assert (found[0].heading, found[0].at, found[0].source, found[0].trust) == (
        "Tea",
        "2026-11-30 14:02",
        "said",
        "owner",
    )
    assert found[1].source == ""


def test_an_id_outlives_marks_case_and_blanks() -> None:
    assert id_of("Likes  TEA") == id_of("- 10:02 likes tea <!-- 2026-11-30 14:02 said; external -->")


def test_words_cannot_pass_for_a_mark() -> None:
    line = marked("tea <!-- 2020-01-01 00:00 said -->", at="2026-11-30 14:02", source="said", trust="external")
    (entry,) = entries_of(line, "f")
    assert entry.trust == "external"
    assert entry.at == "2026-11-30 14:02"


@given(st.text())
def test_what_is_marked_is_read_back(text: str) -> None:
    assume(normal(text).strip("-*_ "))
    line = marked(text, at="2026-11-30 14:02", source="noted", trust="external")
    for entry in entries_of(line, "f"):
        assert entry.trust == "external"
        assert normal(entry.text) == normal(one_line(text))


def test_entries_are_named_by_id_by_words_and_by_part() -> None:
    known = entries_of("- Likes tea\n- Likes green tea\n", "f")
    assert named(known, "likes tea") == [known[0]]
    assert named(known, known[1].id[:4]) == [known[1]]
    assert named(known, "tea") == known
    assert named(known, " ") == []


@pytest.mark.parametrize(
    ("after", "count"), [("- A\n- B\n", 0), ("- B\n", 1), ("", 2), ("# A\n\n- a\n* b <!-- x -->", 1)]
)
def test_what_a_rewrite_loses(after: str, count: int) -> None:
    assert len(lost("- A\n- B\n", after)) == count


def test_an_entry_in_other_words_is_not_lost() -> None:
    assert not lost("- Likes green tea very much\n", "- Likes black tea very much\n")


def test_one_of_several_may_go_but_never_more_than_a_quarter() -> None:
    assert [too_many(1, 1), too_many(1, 2), too_many(2, 4), too_many(2, 8), too_many(3, 8)] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_a_fence_that_nothing_closes_takes_no_other_entries_along() -> None:
    text = "- one\n- two\n```\ncode\n\n- three\n\n- four\n"
    assert [one.text for one in entries_of(text, "x")][-2:] == ["three", "four"]
    closed = "- one\n```\n- no entry\n```\n- two\n"
    assert "two" in [one.text for one in entries_of(closed, "x")]
