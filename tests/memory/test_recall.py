"""What of a memory is shown with a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.memory.recall import ABOUT, CHARACTERS, ITEMS, excerpt, is_worth, lines
from tests.memory.shelves import ask, shelf_of, write


@pytest.mark.parametrize("message", ["ok", "", "??", "yes", "the", "go on"])
def test_some_messages_are_worth_no_search(message: str) -> None:
    assert not is_worth(message)


@pytest.mark.parametrize("message", ["dentist?", "Who is Marta", "过敏", "alpha-7"])
def test_others_are(message: str) -> None:
    assert is_worth(message)


def test_at_most_three_memories_and_two_thousand_characters(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path, f"memory/2026-05-0{number + 1}.md", f"- plum {number} " + f"word{number} " * 200)
    shelf = shelf_of(tmp_path)
    found = lines(ask(shelf, "plum"), "plum")
    assert found[0] == ABOUT
    assert len(found) == 1 + ITEMS
    assert sum(map(len, found)) <= CHARACTERS
    assert all(len(line) <= 500 for line in found)
    assert found[1].startswith("- memory/2026-05-0")
    assert lines([], "plum") == ()
    shelf.close()


def test_an_excerpt_shows_the_part_that_answers() -> None:
    text = "nothing of note " * 60 + "the zeppelin is moored here " + "and so on " * 60
    assert "zeppelin is moored" in excerpt(text, "Where is the zeppelin moored?", length=120)
