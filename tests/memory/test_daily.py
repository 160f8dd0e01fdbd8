"""Notes only grow: nothing twice, nothing of the owner's changed, no way out of the workspace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from limpet.errors import WorkspaceError
from limpet.memory.daily import append_lines, append_text, rewrite, sweep

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


def test_line_ends_and_a_mark_of_the_owners_file_are_kept(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / FILE).write_bytes("\ufeff# 2026-11-30\r\n\r\n- tea\r\n".encode())
    assert add(tmp_path, "- Tea", "- milk") == 1
    assert not append_text(str(tmp_path), FILE, "# 2026-11-30\n\n- tea")
    assert append_text(str(tmp_path), FILE, "[1] one\ntwo")
    expected = "\ufeff# 2026-11-30\r\n\r\n- tea\r\n- milk\r\n\r\n[1] one\r\ntwo\r\n"
    assert (tmp_path / FILE).read_bytes().decode() == expected


def test_drafts_of_killed_processes_are_swept_by_the_next_write(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    own, dead = folder / f".x.md.{os.getpid()}.tmp", folder / f".other.md.{gone.pid}.tmp"
    alive, others = folder / f".other.md.{os.getppid()}.tmp", folder / ".notes.md.tmp"
    for path in (own, dead, alive, others):
        path.write_text("- a secret\n")
    assert rewrite(str(tmp_path), "memory/x.md", lambda text: "- new\n")
    assert sorted(one.name for one in folder.iterdir()) == sorted([alive.name, others.name, "x.md"])
    dead.write_text("- a secret\n")
    sweep(str(tmp_path), "memory")
    sweep(str(tmp_path), "nowhere")
    assert not dead.exists()
