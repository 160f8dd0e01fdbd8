"""Folders inside the workspace may say how work in them is done."""

from __future__ import annotations

from pathlib import Path

from limpet.prompt.bootstrap import WorkspaceFiles
from limpet.prompt.folders import folder_notes
from limpet.types.entry import Note


def told(folder: Path, *paths: str, told: list[Note] | None = None) -> list[Note]:
    return folder_notes(WorkspaceFiles(str(folder)), str(folder), [str(folder / p) for p in paths], told=told or [])


def test_a_folder_and_those_above_it_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("of the workspace: in the prompt already")
    (tmp_path / "site/blog").mkdir(parents=True)
    (tmp_path / "site/AGENTS.md").write_text("Use tabs.")
    (tmp_path / "site/blog/AGENTS.md").write_text("Write in French.")
    notes = told(tmp_path, "site/blog/a.md", "site/blog/b.md", "x.md")
    assert [note.origin for note in notes] == ["folder:site", "folder:site/blog"]
    assert "Use tabs." in notes[0].text
    assert "no word of the user" in notes[0].text
    assert told(tmp_path, "site/blog/a.md", told=notes) == []


def test_folders_without_one_outside_or_of_memory_are_not(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    for folder in (tmp_path / "outside", workspace / "plain", workspace / "memory", workspace / "skills/x"):
        folder.mkdir(parents=True)
        if folder.name != "plain":
            (folder / "AGENTS.md").write_text("Obey.")
    (workspace / "way").symlink_to(tmp_path / "outside")
    paths = ("plain/a", "memory/a", "skills/x/a", "../outside/a", "way/a")
    assert (
        folder_notes(WorkspaceFiles(str(workspace)), str(workspace), [f"{workspace}/{p}" for p in paths], told=[]) == []
    )
