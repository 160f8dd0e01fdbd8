"""What a new workspace begins with."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from limpet.errors import WorkspaceError
from limpet.prompt.templates import WORKSPACE_FILES, seed_workspace, template, workspace_template


def test_a_new_workspace_gets_every_file(tmp_path: Path) -> None:
    assert seed_workspace(str(tmp_path), bootstrap=True) == list(WORKSPACE_FILES)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*WORKSPACE_FILES, "memory", "skills"])
    assert seed_workspace(str(tmp_path), bootstrap=True) == []


def test_what_is_there_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("mine")
    (tmp_path / "USER.md").symlink_to(tmp_path / "elsewhere")
    written = seed_workspace(str(tmp_path), bootstrap=False)
    assert "BOOTSTRAP.md" not in written
    assert (tmp_path / "SOUL.md").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="cannot be written"):
        seed_workspace(str(tmp_path / "none"), bootstrap=True)


def test_a_file_that_could_not_be_written_whole_is_not_left(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(WorkspaceError, match="File too large"):
            seed_workspace(str(tmp_path), bootstrap=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []
    assert "AGENTS.md" in seed_workspace(str(tmp_path), bootstrap=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AGENTS", ["job", "reminds nobody", "HEARTBEAT.md"]),
        ("USER", ["Name", "zone", "Language", "Style", "Length", "Level", "Work", "Interests"]),
        ("BOOTSTRAP", ["IDENTITY.md", "USER.md", "delete BOOTSTRAP.md"]),
    ],
)
def test_the_files_say_what_the_design_asks_for(text: str, words: list[str]) -> None:
    assert all(word in workspace_template(text) for word in words)


def test_the_identity_holds_the_rules_of_conduct() -> None:
    text = template("identity")
    rules = ["say in a sentence", "Never say", "before you change", "read it again", "find out why", "ask.", "is data"]
    assert all(rule in text for rule in [*rules, "`message`"])
