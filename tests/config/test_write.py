"""Changing the file: what people wrote there stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
import tomlkit

from limpet.config.load import load_settings
from limpet.config.write import merge, set_value, set_values, unset_value, write_atomically
from limpet.errors import ConfigError

WRITTEN = """# my settings
[agent]  # the agent
model = "a/b"  # cheap
unheard_of = "kept"

[future.thing]
x = 1
"""


def test_setting_keeps_comments_order_and_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(WRITTEN)
    assert set_value(path, ("agent", "limits", "steps"), "50") == 50
    set_value(path, ("agent", "model"), "c/d")
    text = path.read_text()
    for kept in ("# my settings", "# the agent", "# cheap", 'unheard_of = "kept"', "[future.thing]"):
        assert kept in text
    settings = load_settings(path, {}).settings
    assert (settings.agent.model, settings.agent.limits.steps) == ("c/d", 50)


def test_setting_then_unsetting_gives_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(WRITTEN)
    set_value(path, ("user", "name"), "Ada")
    assert unset_value(path, ("user", "name"))
    assert path.read_text().rstrip() == WRITTEN.rstrip()
    assert not unset_value(path, ("user", "name"))


def test_a_new_file_is_private_and_says_its_version(tmp_path: Path) -> None:
    path = tmp_path / "home" / "config.toml"
    set_value(path, ("providers", "openai", "api_key"), "env:OPENAI_API_KEY")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "version = 1" in path.read_text()
    assert load_settings(path, {}).settings.providers["openai"].api_key == "env:OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (("agent", "modle"), "x", "no setting agent.modle"),
        (("agent", "limits", "steps"), "0", "expected a whole number of at least 1"),
        (("agent",), "x", "is a table"),
        (("store", "durability"), "maybe", "expected one of full, normal"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(
    tmp_path: Path, key: tuple[str, ...], value: str, words: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(WRITTEN)
    with pytest.raises(ConfigError, match=words):
        set_value(path, key, value)
    assert path.read_text() == WRITTEN


def test_a_wrong_value_can_be_repaired_by_setting_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[agent]\nlimits.steps = 'many'\n")
    set_value(path, ("agent", "limits", "steps"), "5")
    assert load_settings(path, {}).settings.agent.limits.steps == 5


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("version = 1\n")
    path = tmp_path / "config.toml"
    path.symlink_to(real)
    set_values(path, {("user", "name"): "Ada"})
    assert path.is_symlink()
    assert 'name = "Ada"' in real.read_text()


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_atomically(tmp_path / "config.toml", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_merge_touches_only_what_differs() -> None:
    document = tomlkit.parse("# top\na = 1 # one\nold = 2\n[t]\nb = 3 # three\n")
    merge(document, {"a": 1, "t": {"b": 4, "c": 5}})
    text = document.as_string()
    assert "# top" in text
    assert "a = 1 # one" in text
    assert "old" not in text
    assert document.unwrap() == {"a": 1, "t": {"b": 4, "c": 5}}
