"""`limpet memory` on a terminal, without a model."""

from __future__ import annotations

from pathlib import Path

from tests.cli.program import run


def test_what_is_remembered_is_listed_taken_back_and_forgotten(tmp_path: Path) -> None:
    added = run(tmp_path, "memory", "add", "Likes tea")
    assert added.code == 0, added.err
    assert "Remembered in MEMORY.md" in added.out
    assert "Likes tea" in run(tmp_path, "memory", "list").out
    assert "Taken back (owner)" in run(tmp_path, "memory", "undo").out
    run(tmp_path, "memory", "add", "Likes milk", "--today")
    assert "It stood in memory/" in run(tmp_path, "memory", "forget", "likes milk").out
    status = run(tmp_path, "memory", "status")
    assert "waiting for your word: 0" in status.out
    assert "consolidation: last never" in status.out


def test_what_is_not_there_is_an_error_and_others_memory_is_apart(tmp_path: Path) -> None:
    gone = run(tmp_path, "memory", "forget", "nothing")
    assert gone.code == 2
    assert "nothing about" in gone.err
    run(tmp_path, "memory", "--of", "people/ann", "add", "Likes tea")
    assert (tmp_path / "workspace/memory/people/ann/MEMORY.md").exists()
    assert "Likes tea" not in run(tmp_path, "memory", "list").out
