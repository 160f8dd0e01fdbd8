"""The index on disk: always up to date, made anew when it is damaged, never an error to who asks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from limpet.memory.index import Within
from limpet.memory.shelf import DAMAGED, IN_MEMORY
from tests.memory.shelves import ask, say, shelf_of, texts, write

NOTE = "- The dentist is Dr. Quandt."


def test_a_note_just_written_is_found_alone(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    shelf = shelf_of(tmp_path)
    (result,) = ask(shelf, "Who is my dentist?")
    assert (result.name, result.text) == ("MEMORY.md:1", NOTE)
    assert shelf.status().state == "ready"
    shelf.close()


def test_what_changes_is_found_and_what_goes_is_not(tmp_path: Path) -> None:
    write(tmp_path, "memory/2026-05-07.md", "- bought apples\n")
    shelf = shelf_of(tmp_path)
    assert texts(ask(shelf, "apples")) == ["- bought apples"]
    write(tmp_path, "memory/2026-05-07.md", "- bought cherry\n")  # as many bytes
    assert ask(shelf, "apples") == []
    assert texts(ask(shelf, "cherry")) == ["- bought cherry"]
    (tmp_path / "workspace/memory/2026-05-07.md").unlink()
    assert ask(shelf, "cherry") == []
    assert shelf.status().state == "empty"
    shelf.close()


def test_a_draft_of_a_killed_process_is_never_found_and_swept_at_the_start(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    write(tmp_path, f"memory/.a.md.{gone.pid}.tmp", NOTE)
    write(tmp_path, f".MEMORY.md.{gone.pid}.tmp", NOTE)
    shelf = shelf_of(tmp_path)
    assert ask(shelf, "dentist") == []
    assert [path.name for path in (tmp_path / "workspace").rglob("*.tmp")] == []
    shelf.close()


def test_comments_are_no_passages_and_a_mark_no_letter(tmp_path: Path) -> None:
    write(
        tmp_path,
        "MEMORY.md",
        "\ufeff# Teeth\n\n<!-- the dentist\nis Dr. Quandt -->\n\n- pull <!-- 2026-05-01 10:00 said -->\n",
    )
    shelf = shelf_of(tmp_path)
    assert ask(shelf, "dentist Quandt") == []
    (found,) = ask(shelf, "teeth pull")
    assert found.first.context == "Teeth"
    shelf.close()


def test_links_and_other_files_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- apples")
    write(tmp_path, "secret.md", "- apples too")
    (tmp_path / "workspace/memory/b.md").symlink_to(tmp_path / "workspace/secret.md")
    shelf = shelf_of(tmp_path)
    assert [one.name for one in ask(shelf, "apples")] == ["memory/a.md:1"]
    with pytest.raises(OSError):  # noqa: PT011 (any)
        shelf.read("memory/../secret.md")
    with pytest.raises(OSError):  # noqa: PT011 (any)
        shelf.read("memory/b.md")
    shelf.close()


def test_what_was_said_is_found_as_it_grows_and_strangers_words_are_withheld(tmp_path: Path) -> None:
    session = say(tmp_path, "agent:main:main", ["my bike is a Gazelle"])
    shelf = shelf_of(tmp_path)
    assert [one.name for one in ask(shelf, "which bike")] == [f"{session}:1"]
    say(tmp_path, "agent:main:main", ["the boat is a Quagga"])
    assert texts(ask(shelf, "boat"))[0].endswith("you: the boat is a Quagga")
    say(tmp_path, "agent:main:web:1", ["transfer the zeppelin"], trust="external")
    (found,) = ask(shelf, "zeppelin")
    assert found.is_external
    assert ask(shelf, "zeppelin", within=Within(withheld=False)) == []
    shelf.close()


def test_pending_notes_are_indexed_and_withheld(tmp_path: Path) -> None:
    write(tmp_path, "memory/pending/2026-05-07.md", NOTE)
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "dentist")) == 1
    assert ask(shelf, "dentist", within=Within(withheld=False)) == []
    shelf.close()


def test_a_scope_shows_its_own_files_and_sessions_only(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- plum cake")
    write(tmp_path, "memory/people/x/MEMORY.md", "- plum jam")
    one, other = say(tmp_path, "k1", ["plum tree"]), say(tmp_path, "k2", ["plum wine"])
    shelf = shelf_of(tmp_path)
    within = Within(without=("memory/people/",), sessions=frozenset([one]))
    assert {result.name for result in ask(shelf, "plum", within=within)} == {"memory/a.md:1", f"{one}:1"}
    theirs = Within(paths=("memory/people/x/",), sessions=frozenset([other]), current=other)
    assert [result.name for result in ask(shelf, "plum", within=theirs)] == ["memory/people/x/MEMORY.md:1"]
    assert ask(shelf, "plum", within=Within(paths=(), sessions=frozenset())) == []
    shelf.close()


def test_erased_entries_disappear_from_the_file_too(tmp_path: Path) -> None:
    session = say(tmp_path, "k", ["the zeppelin lands"])
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "zeppelin")) == 1
    database = apsw.Connection(str(tmp_path / "limpet.db"))
    database.execute("DELETE FROM entries; UPDATE sessions SET erasures = erasures + 1 WHERE id = ?", (session,))
    database.close()
    assert ask(shelf, "zeppelin") == []
    shelf.close()
    assert b"zeppelin" not in b"".join(file.read_bytes() for file in (tmp_path / "index").iterdir())


def test_forgetting_takes_a_file_out_until_it_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    shelf = shelf_of(tmp_path)
    ask(shelf, "dentist")
    assert shelf.forget("MEMORY.md") == 1
    assert len(ask(shelf, "dentist")) == 1
    shelf.close()


@pytest.mark.parametrize("damage", [b"no database at all" * 500, b""])
def test_a_damaged_index_is_made_anew_and_that_is_told(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    shelf = shelf_of(tmp_path)
    ask(shelf, "dentist")
    shelf.close()
    (tmp_path / "index/1.db").write_bytes(damage)
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "dentist")) == 1
    assert shelf.notices == ([DAMAGED] if damage else [])
    shelf.close()


def test_where_nothing_can_be_written_it_works_in_memory(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    (tmp_path / "index").write_text("in the way")
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "dentist")) == 1
    assert shelf.notices[0].startswith(IN_MEMORY[:30])
    shelf.close()


def test_a_rebuild_is_seen_by_another_process_that_has_the_old_one_open(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    mine, other = shelf_of(tmp_path), shelf_of(tmp_path)
    ask(mine, "dentist")
    other.rebuild()
    assert len(ask(mine, "dentist")) == 1
    assert [file.name for file in (tmp_path / "index").glob("*.db")] == ["2.db"]
    mine.close()
    other.close()


KILLED = """
import os, signal, sys
from limpet.memory.generations import Generations
def fill(index):
    index.connection.execute("BEGIN IMMEDIATE")
    print("building", flush=True)
    signal.pause()
Generations(sys.argv[1]).make(fill, over=1)
"""


def test_who_is_killed_in_the_middle_of_a_rebuild_leaves_the_old_one_and_no_lock(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTE)
    shelf = shelf_of(tmp_path)
    ask(shelf, "dentist")
    shelf.close()
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "index")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "building\n"
        os.kill(child.pid, signal.SIGKILL)
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "dentist")) == 1
    assert shelf.notices == []
    shelf.rebuild()
    assert shelf.status().state == "ready"
    assert not (tmp_path / "index/building.db").exists()
    shelf.close()


BESIDE = """
import sys
from pathlib import Path
from tests.memory.shelves import ask, shelf_of
shelf = shelf_of(Path(sys.argv[1]))
for _ in range(5):
    shelf.rebuild()
    assert len(ask(shelf, "plum", most=50)) == 1, shelf.notices
assert shelf.notices == [], shelf.notices
shelf.close()
"""


def test_two_processes_use_it_at_once(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path, f"memory/{number}.md", f"- note {number}\n\n- plum\n" if number == 7 else f"- note {number}\n")
    root = str(Path(__file__).resolve().parents[2])
    arguments = [sys.executable, "-c", BESIDE, str(tmp_path)]
    shelf = shelf_of(tmp_path)
    with subprocess.Popen(arguments, cwd=root) as child:
        while child.poll() is None:
            assert len(ask(shelf, "plum", most=50)) == 1
    assert child.returncode == 0
    assert shelf.notices == []
    shelf.close()
