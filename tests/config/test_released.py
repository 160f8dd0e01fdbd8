"""Settings that people have from every version released so far mean the same today.

`released/N.toml` is a file of version N and is never edited; `N.json` is what was meant, under today's names.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from limpet.config.load import load_settings
from limpet.config.schema import CURRENT_VERSION
from limpet.config.table import is_table, look_up, split_key
from limpet.config.write import set_value

RELEASED = Path(__file__).parent / "released"
VERSIONS = range(1, CURRENT_VERSION + 1)


def means_the_same(path: Path, version: int) -> bool:
    loaded = load_settings(path, {})
    assert not loaded.warnings
    effective: object = msgspec.json.decode(msgspec.json.encode(loaded.settings))
    assert is_table(effective)
    meant = json.loads((RELEASED / f"{version}.json").read_text("utf-8"))
    assert {key: look_up(effective, split_key(key)) for key in meant} == meant
    return True


def test_each_version_has_its_file() -> None:
    assert sorted(path.stem for path in RELEASED.glob("*.toml")) == sorted(map(str, VERSIONS))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_each_version_means_what_it_meant(version: int) -> None:
    assert means_the_same(RELEASED / f"{version}.toml", version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_change_keeps_meaning_and_comments(version: int, tmp_path: Path) -> None:
    text = (RELEASED / f"{version}.toml").read_text("utf-8")
    path = tmp_path / "config.toml"
    path.write_text(text)
    set_value(path, ("undo", "days"), "3")
    assert means_the_same(path, version)
    assert "# good at letters" in path.read_text("utf-8")
    copy = tmp_path / f"config.toml.v{version}"
    assert copy.exists() is (version < CURRENT_VERSION)
