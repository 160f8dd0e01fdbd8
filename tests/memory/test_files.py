"""Which files memory is made of: search, list and forgetting see the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.book import Book
from limpet.memory.files import files_of, is_memory_file, is_record, memory_files
from limpet.memory.scope import OWNERS, MemoryScope
from tests.memory.shelves import ask, shelf_of, write

EVERY = (
    "MEMORY.md",
    "memory/2026-05-01.md",
    "memory/notes.md",
    "memory/.hidden.md",
    "memory/trips/2025/rome.md",
    "memory/2026-05-01-1402-s1.md",
    "memory/HISTORY.md",
    "memory/pending/2026-05-02.md",
    "memory/pending/2026-05-02-1402-s2.md",
)
OTHERS = ("memory/people/ann/MEMORY.md", "memory/groups/g/x/y.md")


def test_what_is_searched_is_what_the_book_knows(tmp_path: Path) -> None:
    for number, path in enumerate((*EVERY, *OTHERS)):
        write(tmp_path, path, f"- zeppelin number{number}\n")
    write(tmp_path, "memory/.git/x.md", "- zeppelin\n")
    write(tmp_path, "memory/draft.txt", "- zeppelin\n")
    shelf, folder = shelf_of(tmp_path), str(tmp_path / "workspace")
    searched = {one.first.origin.path for one in ask(shelf, "zeppelin", most=40, min_score=0)}
    shelf.close()
    people, groups = files_of(folder, MemoryScope("people/ann")), files_of(folder, MemoryScope("groups/g"))
    assert Book(folder, OWNERS).everything() == sorted(EVERY)
    assert searched == {*EVERY, *people, *groups}


def test_every_file_is_listed_as_entries_as_waiting_or_as_a_record(tmp_path: Path) -> None:
    for path in EVERY:
        write(tmp_path, path, f"- about {path}\n")
    book = Book(str(tmp_path / "workspace"), OWNERS)
    waiting = [one.file for one in book.waiting()]
    assert waiting == ["memory/pending/2026-05-02.md"]
    assert {*(one.file for one in book.entries()), *waiting, *book.records()} == set(EVERY)
    assert book.saying("about memory/trips/2025/rome.md") == ["memory/trips/2025/rome.md"]


def test_of_two_names_of_one_file_the_first_is_searched_and_both_are_forgotten(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- a secret\n")
    (tmp_path / "workspace/memory/b.md").hardlink_to(tmp_path / "workspace/memory/a.md")
    folder = str(tmp_path / "workspace")
    assert [one.path for one in memory_files(folder)] == ["memory/a.md"]
    book = Book(folder, OWNERS)
    book.erase("a secret", book.saying("a secret"))
    assert "secret" not in (tmp_path / "workspace/memory/b.md").read_text()


def test_links_lead_nowhere(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/x.md", "- x\n")
    (tmp_path / "workspace/memory").mkdir()
    (tmp_path / "workspace/memory/link").symlink_to(tmp_path / "workspace/elsewhere")
    (tmp_path / "workspace/memory/y.md").symlink_to(tmp_path / "workspace/elsewhere/x.md")
    assert memory_files(str(tmp_path / "workspace")) == []


@pytest.mark.parametrize(
    "path", ["memory/.git/x.md", "memory/../x.md", "memory//x.md", "x.md", "memory/x.txt", "USER.md"]
)
def test_other_paths_are_no_memory_files(path: str) -> None:
    assert not is_memory_file(path)


@given(st.lists(st.sampled_from(["a", "b", ".c", "d.md", ".e.md", "f.txt"]), min_size=1, max_size=3))
def test_what_is_walked_is_what_may_be_read(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("w")
    path = "/".join(["memory", *parts])
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text("x")
    assert [one.path for one in memory_files(str(folder))] == ([path] if is_memory_file(path) else [])


def test_records_are_told_by_their_names() -> None:
    assert [path for path in EVERY if is_record(path)] == [EVERY[5], EVERY[6], EVERY[8]]
