"""Home and workspace: what is wrong with a folder is said in words."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from limpet.config.paths import Home, find_home, find_workspace, prepare_home, prepare_workspace, workspace_fault
from limpet.errors import UserError, WorkspaceError


def home_at(path: Path) -> Home:
    return Home(root=path, config=path / "config.toml")


def test_the_environment_and_the_option_choose_home_and_config(tmp_path: Path) -> None:
    home = find_home({"LIMPET_HOME": str(tmp_path / "a")}, config=str(tmp_path / "b.toml"))
    assert home == Home(root=tmp_path / "a", config=tmp_path / "b.toml")
    assert find_home({"LIMPET_HOME": str(tmp_path)}).config == tmp_path / "config.toml"
    assert find_home({}).root == Path.home() / ".limpet"


def test_the_home_is_private(tmp_path: Path) -> None:
    home = home_at(tmp_path / "deep" / "home")
    prepare_home(home)
    prepare_home(home)
    for folder in (home.root, home.run, home.blobs, home.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(UserError, match="is a file, not a folder"):
        prepare_home(home_at(tmp_path / "home"))


def test_the_workspace_is_in_the_home_unless_set(tmp_path: Path) -> None:
    home = home_at(tmp_path)
    assert find_workspace("", home) == tmp_path / "workspace"
    assert find_workspace("work/../notes", home) == tmp_path / "notes"
    assert find_workspace("~/notes", home) == Path.home() / "notes"
    assert find_workspace("/srv/notes", home) == Path("/srv/notes")


def test_a_workspace_is_brand_new_once(tmp_path: Path) -> None:
    assert prepare_workspace(tmp_path / "w")
    (tmp_path / "w" / "note.md").write_text("x")
    assert not prepare_workspace(tmp_path / "w")


def test_a_link_to_a_folder_is_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert prepare_workspace(tmp_path / "link")


def test_what_is_no_workspace_says_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "fixed").mkdir(mode=0o500)
    for name, words in (
        ("file", "is a file"),
        ("file/below", "is below a file"),
        ("link", "link to nothing"),
        ("fixed", "is read-only"),
    ):
        with pytest.raises(WorkspaceError, match=words) as caught:
            prepare_workspace(tmp_path / name)
        assert "agent.workspace" in caught.value.hint
    with pytest.raises(WorkspaceError, match="root of the file system"):
        prepare_workspace(Path("/"))


@pytest.mark.parametrize("home", ["", "relative/folder"])
def test_a_home_variable_that_names_no_place_is_not_followed(home: str) -> None:
    assert find_home({"HOME": home}).root == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".limpet"


def test_the_judgement_on_a_workspace_changes_nothing_and_is_that_of_its_making(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "none")
    (tmp_path / "locked").mkdir(mode=0o555)
    bad = [tmp_path / "file", tmp_path / "file" / "below", tmp_path / "link", tmp_path / "locked"]
    for path in [*bad, tmp_path / "locked" / "new", Path("/"), tmp_path / "odd\udcff"]:
        fault = workspace_fault(path)
        assert fault
        with pytest.raises(WorkspaceError) as caught:
            prepare_workspace(path)
        assert str(caught.value) == fault
    assert workspace_fault(tmp_path / "new" / "deep") == ""
    assert not (tmp_path / "new").exists()
