"""The snapshot stays; what changed reaches the model as a note, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.config.machine import Machine
from limpet.prompt.bootstrap import WorkspaceFiles
from limpet.prompt.sections import PromptContext
from limpet.prompt.snapshot import build, changed, rebuild_reason
from limpet.prompt.templates import seed_workspace
from limpet.types.entry import PromptEntry


def snapshot(workspace: Path) -> PromptEntry:
    machine = Machine(system="Linux", arch="x86_64", release="6.1", python="3.12.1")
    return build(PromptContext(workspace=str(workspace), machine=machine), ()).entry


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    seed_workspace(str(tmp_path), bootstrap=True)
    return tmp_path


def test_two_builds_are_equal_to_the_byte(workspace: Path) -> None:
    assert snapshot(workspace) == snapshot(workspace)


def test_nothing_changed_says_nothing(workspace: Path) -> None:
    assert changed(snapshot(workspace), WorkspaceFiles(str(workspace))) == []


def test_a_changed_file_is_told_once(workspace: Path) -> None:
    entry = snapshot(workspace)
    (workspace / "SOUL.md").write_text("Be terse.")
    (note,) = changed(entry, WorkspaceFiles(str(workspace)))
    assert note.text == "SOUL.md now reads:\n\nBe terse."
    assert changed(entry, WorkspaceFiles(str(workspace)), told=[note]) == []
    (workspace / "SOUL.md").write_text("Be chatty.")
    assert len(changed(entry, WorkspaceFiles(str(workspace)), told=[note])) == 1


def test_a_file_that_comes_or_goes_is_told(workspace: Path) -> None:
    (workspace / "USER.md").unlink()
    entry = snapshot(workspace)
    (workspace / "USER.md").write_text("- Name: Ada")
    (workspace / "TOOLS.md").unlink()
    (workspace / "MEMORY.md").write_text("- likes tea")
    texts = [note.text for note in changed(entry, WorkspaceFiles(str(workspace)))]
    assert texts == [
        "USER.md now reads:\n\n- Name: Ada",
        "TOOLS.md is gone now; what it said no longer counts.",
        "MEMORY.md now reads:\n\n- likes tea",
    ]


def test_a_changed_file_that_changes_back_is_told_again(workspace: Path) -> None:
    entry = snapshot(workspace)
    before = (workspace / "SOUL.md").read_text()
    (workspace / "SOUL.md").write_text("Be terse.")
    told = changed(entry, WorkspaceFiles(str(workspace)))
    (workspace / "SOUL.md").write_text(before)
    assert len(changed(entry, WorkspaceFiles(str(workspace)), told=told)) == 1


def test_only_bootstrap_going_away_makes_a_new_snapshot(workspace: Path) -> None:
    entry = snapshot(workspace)
    (workspace / "SOUL.md").unlink()
    assert rebuild_reason(entry, str(workspace)) == ""
    (workspace / "BOOTSTRAP.md").unlink()
    assert rebuild_reason(entry, str(workspace)) == "BOOTSTRAP.md is gone"
    assert rebuild_reason(snapshot(workspace), str(workspace)) == ""
