"""Changes of memory files: carried out they give the new text, taken back the old one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.book import Book
from limpet.memory.changes import Hunk, put, reverse
from limpet.memory.entries import BOM
from limpet.memory.scope import OWNERS

LINES = st.lists(st.sampled_from(["- a", "- b", "- c", "- d", "# h"]), unique=True).flatmap(
    lambda lines: st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)).map(
        lambda gaps: [one for line, gap in zip(lines, gaps, strict=True) for one in ([line, ""] if gap else [line])]
    )
)
"""Lines of which none stands there twice, with blank ones between some."""


@given(LINES, LINES)
def test_there_and_back_again(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    with TemporaryDirectory() as folder:
        book = Book(folder, OWNERS)
        (Path(folder) / "MEMORY.md").write_text(before)
        hunks = book.rewritten("MEMORY.md", after)
        book.apply(hunks)
        assert book.read("MEMORY.md") == after
        book.apply([reverse(hunk) for hunk in reversed(hunks)])
        assert book.read("MEMORY.md") == before


def test_a_hunk_is_merged_line_by_line_where_its_lines_were_changed() -> None:
    hunk = Hunk("f", before=("- a", "- b"), after=("- c",))
    assert put("- a\n- mine\n- b\n", hunk) == "- mine\n- c\n"
    assert put("- mine\n", reverse(Hunk("f", after=("- x",)))) == "- mine\n"


def test_line_ends_stay_as_they_are() -> None:
    assert put("- a\r\n- b\x0b\r\n", Hunk("f", before=("- a",), after=("- c",))) == "- c\r\n- b\x0b\r\n"


@given(st.lists(st.tuples(st.sampled_from(["- a", "- b", "mine", ""]), st.sampled_from(["\n", "\r\n"])), min_size=1))
def test_the_end_of_each_line_that_stays_is_its_own(lines: list[tuple[str, str]]) -> None:
    text = BOM + "".join(line + end for line, end in lines)
    made = put(text, Hunk("f", after=("- new",), anchor=tuple(line for line, _ in lines[-2:])))
    assert made in (f"{text}- new\n", f"{text}- new\r\n")


def test_a_text_without_an_end_stays_so() -> None:
    assert put("# M\r\n\r\n- a", Hunk("f", after=("- b",), anchor=("- a",))) == "# M\r\n\r\n- a\r\n- b"
