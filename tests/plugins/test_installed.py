"""What is installed is told without importing any of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from limpet.plugins.installed import find, installed, normal
from tests.plugins.installing import importable, install, install_hello

LOUD = "raise SystemExit('imported')\n"


def test_a_plugin_is_found_by_its_entry_points_and_not_imported(tmp_path: Path) -> None:
    install(tmp_path / "a", "Loud_One", {"loud_one.py": LOUD}, tools="loud_one:x")
    with importable(tmp_path / "a"):
        found = {plugin.name: plugin for plugin in installed()}
        assert "loud_one" not in sys.modules
    plugin = found["loud-one"]
    assert (plugin.version, plugin.summary) == ("1.0", "For a test.")
    assert [entry.value for entry in plugin.entries] == ["loud_one:x"]


def test_other_distributions_are_no_plugins(tmp_path: Path) -> None:
    install(tmp_path / "a", "plain", {"plain.py": ""})
    with importable(tmp_path / "a"):
        assert find("plain") is None
        assert "plain" not in [plugin.name for plugin in installed()]
    assert find("not-installed-at-all") is None


@pytest.mark.parametrize("spelt", ["limpet-plugin-hello", "limpet_plugin_hello", "Limpet.Plugin-Hello"])
def test_a_name_has_one_form(spelt: str) -> None:
    assert normal(spelt) == "limpet-plugin-hello"


def digest(folder: Path, name: str = "limpet-plugin-hello") -> str:
    with importable(folder):
        plugin = find(name)
    assert plugin is not None
    return plugin.digest


def test_the_digest_is_that_of_the_content_wherever_it_lies(tmp_path: Path) -> None:
    first, second = install_hello(tmp_path / "a"), install_hello(tmp_path / "b")
    assert digest(first) == digest(second) != ""


def test_the_digest_changes_with_any_file(tmp_path: Path) -> None:
    folder = install_hello(tmp_path / "a")
    seen = {digest(folder)}
    module = folder / "limpet_plugin_hello"
    (module / "more.py").write_text("x = 1\n")
    seen.add(digest(folder))
    (module / "more.py").write_text("x = 2\n")
    seen.add(digest(folder))
    (module / "data.json").write_text("{}")
    seen.add(digest(folder))
    assert len(seen) == 4


def test_the_digest_is_the_same_after_a_run(tmp_path: Path) -> None:
    folder = install_hello(tmp_path / "a")
    before = digest(folder)
    (folder / "limpet_plugin_hello" / "__pycache__").mkdir()
    (folder / "limpet_plugin_hello" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"cache")
    assert digest(folder) == before


def test_what_an_import_would_find_first_counts(tmp_path: Path) -> None:
    """Another module of the same name, earlier on the path, is other code."""
    folder = install_hello(tmp_path / "a")
    before = digest(folder)
    (tmp_path / "b" / "limpet_plugin_hello").mkdir(parents=True)
    (tmp_path / "b" / "limpet_plugin_hello" / "__init__.py").write_text("evil = 1\n")
    with importable(folder), importable(tmp_path / "b"):
        plugin = find("limpet-plugin-hello")
    assert plugin is not None
    assert plugin.digest != before


def test_a_plugin_without_its_module_has_no_digest(tmp_path: Path) -> None:
    folder = install(tmp_path / "a", "hollow", {"other.py": ""}, tools="hollow_module:x")
    assert digest(folder, "hollow") == ""
