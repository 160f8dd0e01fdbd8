"""What is shown of what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.shelves import ask, say, shelf_of, texts, write

NOTES = """# People
- Marta is allergic to peanuts.
- Ruben plays the cello on Thursdays.
- The landlord is Mr. Okafor.
# Work
- We chose PostgreSQL for the billing service.
- The server alpha-7 runs Debian 12.
- `deploy_all.sh` restarts every worker.
"""


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "火星",
        "how are you today",
        "thanks!",
        '"*" AND - NEAR(',
        "(((",
        "",
        "\x00",
        "写一首诗",
    ],
)
def test_a_question_about_nothing_finds_nothing(tmp_path: Path, question: str) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    shelf = shelf_of(tmp_path)
    assert ask(shelf, question) == []
    shelf.close()


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Who is my landlord?", "Okafor"),
        ("which database does billing use", "PostgreSQL"),
        ("alpha-7", "Debian"),
        ("deploy_all.sh", "restarts"),
        ("Is Marta allergic to anything?", "peanuts"),
    ],
)
def test_a_question_about_something_finds_it_first(tmp_path: Path, question: str, part: str) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    shelf = shelf_of(tmp_path)
    assert part in ask(shelf, question)[0].text
    shelf.close()


def test_exact_names_and_paths_come_first(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- version 1 of the tool tool_12 is old\n\n- tool tool tool 12 12 is what we use\n")
    write(tmp_path, "memory/plans.md", "- something else")
    shelf = shelf_of(tmp_path)
    assert "tool_12" in texts(ask(shelf, "tool_12"))[0]
    assert texts(ask(shelf, "what is in memory/plans.md?"))[0] == "- something else"
    shelf.close()


def test_near_duplicates_are_shown_once(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- the wifi password changes each month")
    write(tmp_path, "memory/b.md", "- The WiFi password changes each month.")
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "wifi password")) == 1
    shelf.close()


def test_neighbours_are_one_result_and_their_lines_stand_once(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- cello lesson on Monday\n- cello lesson costs 40\n- bread\n- nothing here\n")
    shelf = shelf_of(tmp_path)
    (result,) = ask(shelf, "cello lesson")
    assert (result.name, result.text) == (
        "memory/a.md:1-3",
        "- cello lesson on Monday\n- cello lesson costs 40\n- bread",
    )
    shelf.close()


def test_one_source_does_not_fill_all_places(tmp_path: Path) -> None:
    for number in range(9):
        say(tmp_path, f"k{number}", [f"plum number {number} {'xyz'[number % 3] * (number + 3)}"])
    write(tmp_path, "memory/a.md", f"- a plum {'and so much more ' * 9}")
    shelf = shelf_of(tmp_path)
    found = ask(shelf, "plum", most=3)
    assert len(found) == 3
    assert "memory/a.md:1" in {result.name for result in found}
    assert len(ask(shelf, "plum", most=1)) == 1
    shelf.close()


def test_a_named_day_finds_what_was_noted_then(tmp_path: Path) -> None:
    write(tmp_path, "memory/2026-05-12.md", "- paid the plumber\n")
    write(tmp_path, "memory/2026-03-02.md", "- sold the car\n")
    shelf = shelf_of(tmp_path)
    assert texts(ask(shelf, "What happened yesterday?")) == ["- paid the plumber"]
    assert texts(ask(shelf, "在三月二日发生了什么")) == ["- sold the car"]
    shelf.close()
