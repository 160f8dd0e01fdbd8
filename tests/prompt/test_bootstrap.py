"""Cutting and counting."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from limpet.prompt.bootstrap import Allowance, WorkspaceFiles, cut, read_workspace_file


@given(st.text(st.sampled_from("ab\n"), max_size=400), st.integers(80, 300))
def test_a_cut_text_fits_and_names_its_file(text: str, cap: int) -> None:
    short = cut(text, cap, "SOUL.md")
    assert len(short) <= cap
    assert short == text or "[SOUL.md is cut here" in short


def test_the_cut_is_at_a_line() -> None:
    assert cut("one line\n" * 30, 120, "X.md").splitlines()[-2:] == [
        "one line",
        "[X.md is cut here: 270 characters in all; read the file for the rest]",
    ]


def test_what_is_used_up_is_used_up() -> None:
    allowance = Allowance(file_cap=500, total_cap=600, tokens=10_000)
    assert len(allowance.take("a" * 1000, "A.md")) <= 500
    assert len(allowance.take("b" * 1000, "B.md")) <= 100
    assert allowance.take("c" * 1000, "C.md").startswith("[C.md is cut here")


def test_a_file_that_has_settled_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "SOUL.md").write_text("Be terse.")
    files = WorkspaceFiles(str(tmp_path), settled=0)
    assert files.read("SOUL.md") is files.read("SOUL.md")
    assert files.read("SOUL.md") == read_workspace_file(str(tmp_path), "SOUL.md")


def test_a_change_just_after_the_reading_is_seen_though_the_times_are_equal(tmp_path: Path) -> None:
    path, files = tmp_path / "SOUL.md", WorkspaceFiles(str(tmp_path))
    for text in ("one", "two", "six"):
        path.write_text(text)
        os.utime(path, ns=(0, 0))
        assert files.read("SOUL.md").text == text


def test_files_that_come_go_and_become_links_are_seen(tmp_path: Path) -> None:
    workspace, secret = tmp_path / "workspace", tmp_path / "secret"
    workspace.mkdir()
    secret.write_text("secret")
    path, files = workspace / "MEMORY.md", WorkspaceFiles(str(workspace), settled=0)
    assert files.read("MEMORY.md").sha256 == ""
    path.write_text("- likes tea")
    assert files.read("MEMORY.md").text == "- likes tea"
    path.unlink()
    path.symlink_to(secret)
    assert files.read("MEMORY.md").text == ""
    path.unlink()
    assert files.read("MEMORY.md").sha256 == ""
