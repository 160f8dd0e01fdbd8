"""What is kept before a turn changes something, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from limpet.types.entry import UndoPoint
from limpet.undo.copies import DAY
from limpet.undo.forget import forget
from limpet.undo.keeper import Retention
from limpet.undo.tree import SETTLED, Limits, Node, Tree, is_settled
from tests.undo.ground import Ground, picture


def size_of(ground: Ground) -> tuple[int, int]:
    return ground.keeper.copies.sums()


def test_a_file_tool_keeps_only_its_file(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("aa")
    (ground.place / "b").write_text("bb")
    assert ground.file("a") is None
    assert size_of(ground) == (1, 2)
    (ground.place / "a").write_text("new")
    ground.finish()
    assert ground.propose().actions == ("- put back a",)


def test_folders_made_on_the_way_go_again(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    ground.file("x/y/a")
    (ground.place / "x" / "y").mkdir(parents=True)
    (ground.place / "x" / "y" / "a").write_text("new")
    ground.finish()
    assert ground.take_back() == []
    assert picture(ground.place) == {}


def test_the_state_before_the_first_change_counts_however_often_it_changes(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("one")
    for number in range(3):
        ground.file("a")
        (ground.place / "a").write_text(f"v{number}")
    ground.command()
    (ground.place / "a").unlink()
    ground.finish()
    ground.take_back()
    assert (ground.place / "a").read_text() == "one"


def test_another_process_goes_on_with_the_point_of_the_first_attempt(tmp_path: Path) -> None:
    first = Ground(tmp_path)
    (first.place / "a").write_text("one")
    first.command()
    (first.place / "a").write_text("half")
    first.keeper.close()
    second = Ground(tmp_path)
    assert second.command() is None
    (second.place / "a").write_text("whole")
    second.finish()
    second.take_back()
    assert (second.place / "a").read_text() == "one"


def test_a_turn_that_never_ended_can_be_taken_back(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("one")
    ground.command()
    (ground.place / "a").write_text("half")
    assert ground.take_back() == []
    assert (ground.place / "a").read_text() == "one"


def test_large_files_are_named_and_the_rest_is_restored(tmp_path: Path) -> None:
    ground = Ground(tmp_path, limits=Limits(file=10, total=1_000))
    (ground.place / "big").write_bytes(b"x" * 11)
    (ground.place / "small").write_bytes(b"x" * 10)
    assert ground.command() == UndoPoint(files=2, size=10, unkept=("big",))
    (ground.place / "big").write_text("y")
    (ground.place / "small").write_text("y")
    ground.finish()
    assert ground.propose().exceptions == ("- big: it has 0.0 MB; files up to 1e-05 MB are kept",)
    assert ground.take_back() == []
    assert (ground.place / "big").read_text() == "y"
    assert (ground.place / "small").read_bytes() == b"x" * 10


def test_beyond_the_sum_the_smallest_files_are_kept(tmp_path: Path) -> None:
    ground = Ground(tmp_path, limits=Limits(file=100, total=30))
    for name, size in (("a", 25), ("b", 5), ("c", 20)):
        (ground.place / name).write_bytes(name.encode() * size)
    assert ground.command() == UndoPoint(files=3, size=25, unkept=("a",))


def test_a_large_file_that_the_turn_made_is_removed_and_said_to_be_gone_for_good(tmp_path: Path) -> None:
    ground = Ground(tmp_path, limits=Limits(file=10))
    ground.command()
    (ground.place / "big").write_bytes(b"x" * 11)
    ground.finish()
    assert ground.propose().actions == ("- remove big",)
    ground.take_back()
    assert picture(ground.place) == {}


def test_too_many_files_refuse_commands_but_not_file_tools(tmp_path: Path) -> None:
    ground = Ground(tmp_path, limits=Limits(count=3))
    for name in "abcd":
        (ground.place / name).write_text(name)
    ground.file("a")
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert said.refused == "there are over 3 files and folders"
    assert ground.command() is None
    (ground.place / "a").write_text("new")
    ground.finish()
    ground.take_back()
    assert (ground.place / "a").read_text() == "a"


def test_the_next_tree_differs_in_what_changed_and_the_one_before_is_dropped(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for number in range(50):
        (ground.place / f"f{number}").write_text(f"{number}")
    ground.command("t1")
    ground.finish("t1")
    known = ground.keeper.copies.index(ground.keeper.workspace)
    os.chmod(ground.place / "f1", 0o600)
    before = ground.keeper.copies.point("t1")
    ground.command("t2")
    after = ground.keeper.copies.point("t2")
    assert before is not None
    assert after is not None
    assert after.tree is not None
    changed = [path for path, node in after.tree.nodes.items() if known.nodes[path] != node]
    assert changed == [b"f1"]
    again = ground.keeper.copies.point("t1")
    assert again is not None
    assert again.tree is None, "the tree of a turn that is over is not needed any more"


def test_what_lies_where_it_is_made_anew_is_not_looked_into(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for folder in ("node_modules/x", ".git/objects/ab", ".limpet/trash", "src/__pycache__"):
        (ground.place / folder).mkdir(parents=True)
        (ground.place / folder / "file").write_text("x")
    (ground.place / ".git" / "HEAD").write_text("ref")
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert said.files == 1
    (ground.place / ".venv").mkdir()
    ground.finish()
    point = ground.keeper.copies.point("t1")
    assert point is not None
    assert point.closed == (b".git/objects", b".venv", b"node_modules", b"src/__pycache__")
    assert ground.propose().exceptions == ("- .venv: it is not looked into",)


def test_pipes_sockets_and_sparse_files(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    os.mkfifo(ground.place / "old")
    with open(ground.place / "sparse", "wb") as file:
        file.truncate(1 << 40)
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert said.unkept == ("sparse",)
    (ground.place / "old").unlink()
    os.mkfifo(ground.place / "new")
    ground.finish()
    proposal = ground.propose()
    assert proposal.actions == ("- remove the pipe or socket new",)
    assert proposal.exceptions == ("- old: a pipe, socket or device cannot be made again",)
    assert ground.take_back() == []
    assert not (ground.place / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "secret").write_text("x")
    (ground.place / "secret").chmod(0)
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert said.unkept == ("secret",)


def test_a_disk_that_fails_is_said_and_the_turn_goes_on(tmp_path: Path) -> None:
    (tmp_path / "undo").write_text("in the way")
    ground = Ground(tmp_path)
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert said.refused.startswith("what was there could not be kept: ")
    ground.finish()


def test_copies_age_and_the_oldest_go_first(tmp_path: Path) -> None:
    ground = Ground(tmp_path, retention=Retention(days=2, total=1_000))
    (ground.place / "a").write_text("first")
    ground.command("t1")
    (ground.place / "a").write_text("second")
    ground.finish("t1")
    ground.clock.advance(3 * DAY / 1000)
    ground.command("t2")
    assert [point.turn for point in ground.keeper.copies.points("agent:main:main")] == ["t2"]
    assert size_of(ground) == (2, 11), "what was replaced just now is kept for its time"
    ground.clock.advance(3 * DAY / 1000)
    ground.command("t3")
    assert size_of(ground) == (1, 6)


def test_a_copy_that_is_gone_is_said(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("first")
    ground.file("a")
    (ground.place / "a").write_text("second")
    ground.finish()
    with ground.keeper.copies.writing() as connection:
        connection.execute("DELETE FROM copies")
    assert ground.propose().exceptions == ("- a: its copy is no longer kept",)


def test_nothing_is_kept_when_it_is_switched_off(tmp_path: Path) -> None:
    ground = Ground(tmp_path, retention=Retention(days=0))
    assert ground.command() is None
    assert ground.file("a") is None
    ground.finish()
    assert not (tmp_path / "undo").exists()


def test_copies_are_for_the_owner_only(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("x")
    ground.command()
    for path in (tmp_path / "undo").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize(("old", "new"), [(".git", "elsewhere"), ("node_modules", "modules")])
def test_what_was_not_looked_into_is_not_taken_for_new_when_it_is_moved(tmp_path: Path, old: str, new: str) -> None:
    ground = Ground(tmp_path)
    for path in (".git/objects/ab/file", ".git/HEAD", "node_modules/x/file"):
        (ground.place / path).parent.mkdir(parents=True, exist_ok=True)
        (ground.place / path).write_text("x")
    ground.command()
    (ground.place / old).rename(ground.place / new)
    ground.finish()
    ground.take_back()
    kept = [path for path in (ground.place / new).rglob("file")]
    assert [path.read_text() for path in kept] == ["x"]
    assert (ground.place / ".git" / "HEAD").read_text() == "x"


def test_times_of_files_just_written_are_not_believed() -> None:
    node = Node("file", ctime=10)
    assert not is_settled(Tree(10 + SETTLED, {b"a": node}))
    assert is_settled(Tree(11 + SETTLED, {b"a": node}))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_the_turn_locked_is_opened_again(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "d" / "e").mkdir(parents=True)
    (ground.place / "d" / "e" / "a").write_text("x")
    was = picture(ground.place)
    for number, mode in enumerate((0, 0o644, 0o300)):
        ground.command(f"t{number}")
        (ground.place / "d").chmod(mode)
        ground.finish(f"t{number}")
        assert ground.take_back(f"t{number}", mark=f"r{number}") == []
        assert picture(ground.place) == was


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_was_in_a_locked_folder_is_not_taken_for_new(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for name in ("d", "e"):
        (ground.place / name).mkdir()
        (ground.place / name / "a").write_text("x")
    (ground.place / "d").chmod(0)
    (ground.place / "e").chmod(0o644)
    said = ground.command()
    assert isinstance(said, UndoPoint)
    assert set(said.unkept) == {"d", "e"}
    for name in ("d", "e"):
        (ground.place / name).chmod(0o755)
    ground.finish()
    assert ground.take_back() == []
    for name in ("d", "e"):
        (ground.place / name).chmod(0o755)
        assert (ground.place / name / "a").read_text() == "x"


def test_what_an_erased_turn_kept_is_gone_from_the_disk(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_text("a secret of long ago")
    (ground.place / "b").write_text("of another turn")
    ground.file("a", name="t1")
    (ground.place / "a").write_text("new")
    ground.finish("t1")
    ground.file("b", name="t2")
    (ground.place / "b").write_text("new")
    ground.finish("t2")
    assert asyncio.run(forget(ground.keeper.copies, ["t1", "t9"])) == 1
    kept = b"".join(file.read_bytes() for file in Path(ground.keeper.copies.path).parent.iterdir())
    assert b"a secret of long ago" not in kept
    assert b"of another turn" in kept
