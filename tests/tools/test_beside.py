"""`read_file` for folders beside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.errors import PathRefusedError
from limpet.testing.context import call, tool_context
from limpet.tools.beside import reading_beside
from limpet.tools.files_read import read_file


def read(tmp_path: Path, path: str) -> str:
    tool = reading_beside(read_file, lambda: (str(tmp_path / "skills" / "tea"),))
    return call(tool, tool_context(tmp_path / "w"), path=path).text


def test_a_skill_outside_the_workspace_is_read_with_its_folder_named(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "tea"
    for place in (folder, tmp_path / "w" / "skills" / "own"):
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text("Run {baseDir}/brew.sh")
    assert f"Run {folder}/brew.sh" in read(tmp_path, f"{folder}/SKILL.md")
    assert f"Run {tmp_path}/w/skills/own/brew.sh" in read(tmp_path, "skills/own/SKILL.md")


def test_nothing_else_beside_the_workspace_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "tea"
    folder.mkdir(parents=True)
    (tmp_path / "w").mkdir()
    (tmp_path / "secret").write_text("x")
    (folder / "way").symlink_to(tmp_path / "secret")
    for path in (f"{folder}/way", f"{folder}/../../secret", f"{tmp_path}/skills/tea-time/x", f"{tmp_path}/secret"):
        with pytest.raises(PathRefusedError):
            read(tmp_path, path)
