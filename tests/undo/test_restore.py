"""Restoring touches what the turn left as it is, and nothing outside the workspace, whatever is swapped meanwhile."""

from __future__ import annotations

from pathlib import Path

from limpet.undo import rollback
from tests.undo.ground import Ground, picture


def changed(tmp_path: Path) -> Ground:
    """A turn that changed `d/a`, deleted `d/b` and made `n/c`."""
    ground = Ground(tmp_path)
    (ground.place / "d").mkdir()
    (ground.place / "d" / "a").write_text("one")
    (ground.place / "d" / "b").write_text("bbb")
    ground.command()
    (ground.place / "d" / "a").write_text("two")
    (ground.place / "d" / "b").unlink()
    (ground.place / "n").mkdir()
    (ground.place / "n" / "c").write_text("ccc")
    ground.finish()
    return ground


def test_a_folder_swapped_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    outside = tmp_path / "outside"
    (ground.place / "d").rename(outside)
    (ground.place / "d").symlink_to(outside)
    was = picture(outside)
    proposal = ground.propose()
    assert "- d/a: it was changed since" in proposal.exceptions
    ground.take_back()
    assert picture(outside) == was
    assert (ground.place / "d").is_symlink()


def test_a_folder_swapped_after_the_plan_was_made_leads_nowhere(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    steps = ground.propose().restores
    outside = tmp_path / "outside"
    (ground.place / "d").rename(outside)
    (ground.place / "d").symlink_to(outside)
    was = picture(outside)
    failed = dict(rollback.carry_out(ground.keeper, steps))
    assert set(failed) == {b"d/a", b"d/b"}
    assert picture(outside) == was


def test_a_file_swapped_for_a_link_is_left(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    outside = tmp_path / "secret"
    outside.write_text("secret")
    (ground.place / "d" / "a").unlink()
    (ground.place / "d" / "a").symlink_to(outside)
    assert "- d/a: it was changed since" in ground.propose().exceptions
    ground.take_back()
    assert outside.read_text() == "secret"
    assert (ground.place / "d" / "a").is_symlink()


def test_what_changes_between_plan_and_act_is_left(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    steps = ground.propose().restores
    (ground.place / "d" / "a").write_text("mine now")
    (ground.place / "d" / "b").write_text("mine too")
    (ground.place / "n" / "mine").write_text("and this")
    failed = rollback.carry_out(ground.keeper, steps)
    assert [path for path, _ in failed] == [b"d/a", b"d/b", b"n"]
    assert (ground.place / "d" / "a").read_text() == "mine now"
    assert (ground.place / "d" / "b").read_text() == "mine too"
    assert (ground.place / "n" / "mine").exists()


def test_a_new_folder_with_something_of_the_owner_stays(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    (ground.place / "n" / "mine").write_text("x")
    proposal = ground.propose()
    assert "- n: it holds mine, which stays" in proposal.exceptions
    ground.take_back()
    assert sorted(path.name for path in (ground.place / "n").iterdir()) == ["mine"]


def test_what_was_in_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    (ground.place / "d" / "a").unlink()
    (ground.place / "d").rmdir()
    exceptions = ground.propose().exceptions
    assert "- d/a: it was changed since" in exceptions
    assert "- d/b: its folder is not there any more" in exceptions


def test_what_is_as_before_already_needs_nothing(tmp_path: Path) -> None:
    ground = changed(tmp_path)
    assert ground.take_back() == []
    proposal = ground.propose()
    assert (proposal.actions, proposal.exceptions) == ((), ())


def test_long_lists_and_differences_are_cut(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    ground.command()
    for number in range(60):
        (ground.place / f"f{number:02}").write_text("line\n" * 50)
    ground.finish()
    proposal = ground.propose()
    assert len(proposal.actions) == 41
    assert proposal.actions[-1] == "- … and 20 more"
    assert len(proposal.differences) < 7_000
    assert proposal.differences.endswith("[The rest of the differences is left out.]")


def test_bytes_are_no_differences(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.place / "a").write_bytes(b"\0old")
    ground.command()
    (ground.place / "a").write_bytes(b"\0new!")
    ground.finish()
    assert ground.propose().differences == "a: not text (5 bytes now, 4 then)"


def test_names_that_steer_a_terminal_are_made_harmless(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    ground.command()
    (ground.place / "a\x1b[31m\n- remove b").write_text("x")
    ground.finish()
    assert ground.propose().actions == ("- remove a\\x1b[31m\\x0a- remove b",)
