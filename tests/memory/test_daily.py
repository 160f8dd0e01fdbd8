"""Notes only grow: nothing twice, nothing of the owner's changed, no way out of the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limpet.errors import WorkspaceError
from limpet.memory.daily import append_lines, append_text

FILE = "memory/2026-11-30.md"


def add(folder: Path, *lines: str) -> int:
    return append_lines(str(folder), FILE, lines, title="2026-11-30")


def test_a_new_file_has_a_heading_and_the_lines(tmp_path: Path) -> None:
    assert add(tmp_path, "- tea", "- milk") == 2
    assert (tmp_path / FILE).read_text() == "# 2026-11-30\n\n- tea\n- milk\n"


def test_what_is_there_already_is_not_added(tmp_path: Path) -> None:
    add(tmp_path, "- Likes tea")
    assert add(tmp_path, "* likes  TEA", "- 10:02 likes tea", "- likes milk", "- likes milk", "  ") == 1
    assert (tmp_path / FILE).read_text().count("tea") == 1


def test_the_owners_own_text_stays_to_the_byte(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / FILE).write_bytes(b"mine, without an end\xff")
    add(tmp_path, "- tea")
    assert (tmp_path / FILE).read_bytes() == b"mine, without an end\xff\n- tea\n"


def test_a_paragraph_is_added_once(tmp_path: Path) -> None:
    assert append_text(str(tmp_path), "memory/HISTORY.md", "[1] one two", mark="[1]")
    assert not append_text(str(tmp_path), "memory/HISTORY.md", "[1] in other words", mark="[1]")
    assert append_text(str(tmp_path), "memory/HISTORY.md", "[2] three", mark="[2]")
    assert (tmp_path / "memory/HISTORY.md").read_text() == "[1] one two\n\n[2] three\n"


@pytest.mark.parametrize("what", ["folder link", "file link", "pipe", "folder"])
def test_only_ordinary_files_inside_the_workspace_are_written(tmp_path: Path, what: str) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (outside / "memory").mkdir(parents=True)
    workspace.mkdir()
    if what == "folder link":
        (workspace / "memory").symlink_to(outside / "memory")
    else:
        (workspace / "memory").mkdir()
    if what == "file link":
        (workspace / FILE).symlink_to(outside / "x.md")
    elif what == "pipe":
        os.mkfifo(workspace / FILE)
    elif what == "folder":
        (workspace / FILE).mkdir()
    with pytest.raises(WorkspaceError, match="cannot be written"):
        add(workspace, "- tea")
    assert list((outside / "memory").iterdir()) == []
