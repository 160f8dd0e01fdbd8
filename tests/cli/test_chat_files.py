"""Finding files by a few letters."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from limpet.cli.chat_files import Files, best
from limpet.cli.message import files_in

PATHS = ["src/cli/view.py", "src/view/cli.py", "docs/overview.md", "view.py", "a/very/ill/egg.txt"]


def test_names_come_before_folders_and_short_before_long() -> None:
    assert best("view", PATHS)[:4] == ["view.py", "src/cli/view.py", "docs/overview.md", "src/view/cli.py"]


def test_letters_may_be_apart() -> None:
    assert best("sclv", PATHS)[0] == "src/cli/view.py"


def test_upper_case_counts() -> None:
    assert best("View", [*PATHS, "View.md"]) == ["View.md"]


@given(st.text("abc/", max_size=4), st.lists(st.text("abc/.", min_size=1, max_size=12), max_size=30))
def test_what_is_offered_is_there_and_fits(letters: str, paths: list[str]) -> None:
    for path in best(letters, paths):
        assert path in paths
        rest = iter(path)
        assert all(letter in rest for letter in letters)


def test_the_workspace_is_offered_beside_the_current_folder(tmp_path: Path) -> None:
    here, workspace = tmp_path / "here", tmp_path / "workspace"
    here.mkdir()
    workspace.mkdir()
    (here / "tide.txt").write_text("")
    (here / ".gitignore").write_text("tide.log\n")
    (here / "tide.log").write_text("")
    (workspace / "tides.md").write_text("")
    found = asyncio.run(Files(str(here), str(workspace)).matching("tide"))
    assert found == ["tide.txt", f"{workspace}/tides.md"]


def test_a_folder_that_is_the_workspace_is_looked_through_once(tmp_path: Path) -> None:
    (tmp_path / "tide.txt").write_text("")
    assert asyncio.run(Files(str(tmp_path), str(tmp_path)).matching("")) == ["tide.txt"]


def test_files_are_named_in_many_ways(tmp_path: Path) -> None:
    picture, text = tmp_path / "my pic.png", tmp_path / "a.txt"
    picture.write_bytes(b"")
    text.write_text("")
    assert files_in(f'see @"{picture}" and @{text}') == [f"@{picture}", f"@{text}"]
    for pasted in (f"'{picture}'", f'"{picture}"', str(picture).replace(" ", "\\ ")):
        assert files_in(f"what is {pasted} ?") == [f"@{picture}"]
        assert files_in(pasted) == [f"@{picture}"]


def test_other_words_are_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert files_in(f"{tmp_path}/a.txt is a text, mail me@{tmp_path}/none") == []
    assert files_in(f"/label @{tmp_path}/a.txt") == []
