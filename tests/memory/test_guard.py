"""File tools on memory files: what is added stays, what is doubled goes, what would be lost is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.errors import ToolError
from limpet.memory.book import Book
from limpet.memory.guard import is_memory, judged
from limpet.memory.scope import OWNERS

DAY = "memory/2026-02-02.md"


def after(folder: Path, file: str, old: str, new: str | None) -> str | None:
    made = judged(Book(str(folder), OWNERS), file, before=old.encode(), after=None if new is None else new.encode())
    return None if made is None else made.decode()


@pytest.mark.parametrize(
    ("file", "memory"),
    [("MEMORY.md", True), ("Memory.MD", True), ("memory/x.md", True), ("memory.py", False), ("a/MEMORY.md", False)],
)
def test_what_a_memory_file_is(file: str, memory: bool) -> None:
    assert is_memory(file) is memory


def test_c31_a_day_that_is_written_anew_keeps_what_it_held(tmp_path: Path) -> None:
    assert after(tmp_path, DAY, "A\n", "B\n") == "A\nB\n"
    assert after(tmp_path, DAY, "# Day\n\n- A\n", "# Day\n\n- A\n- B\n") == "# Day\n\n- A\n- B\n"


def test_a_rewrite_that_loses_over_a_quarter_is_refused(tmp_path: Path) -> None:
    old = "".join(f"- fact number {word}\n" for word in ("one", "two", "three", "four"))
    with pytest.raises(ToolError, match="3 of its 4"):
        after(tmp_path, "MEMORY.md", "- apples\n- pears\n- plums\n- figs\n", "- figs\n")
    assert after(tmp_path, "MEMORY.md", old, old.replace("- fact number one\n", "")) is not None


def test_deleting_a_memory_file_is_refused(tmp_path: Path) -> None:
    for file in ("MEMORY.md", DAY):
        with pytest.raises(ToolError, match="memory"):
            after(tmp_path, file, "- A\n- B\n", None)
    assert after(tmp_path, "memory/empty.md", "# nothing\n", None) is None


def test_what_is_said_already_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/MEMORY.md").write_text("- Likes milk\n")
    new = "- Likes tea\n- likes  TEA\n- Likes milk\n- Likes cake\n"
    assert after(tmp_path, "MEMORY.md", "- Likes tea\n", new) == "- Likes tea\n- Likes cake\n"
    assert after(tmp_path, "MEMORY.md", "", "- x y\n- X  y\n") == "- x y\n"


def test_an_entry_may_be_put_in_other_words(tmp_path: Path) -> None:
    new = "- Lives in Lisbon since May\n"
    assert after(tmp_path, "MEMORY.md", "- Lives in Porto since May\n", new) == new


def test_line_ends_and_a_mark_stay_when_entries_are_left_out_or_kept(tmp_path: Path) -> None:
    old = "\ufeff# Memory\r\n\r\n- tea\r\n- milk\r\n"
    assert after(tmp_path, "MEMORY.md", old, f"{old}- Tea\r\n- rum\r\n") == f"{old}- rum\r\n"
    assert after(tmp_path, "memory/2026-11-30.md", old, "- rum\n") == f"{old}- rum\r\n"
