"""`limpet config`."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from limpet.cli import run
from limpet.config import check
from limpet.config.schema import Settings


def test_set_get_and_unset(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "agent.limits.steps", "12"]) == 0
    capsys.readouterr()
    assert run(["config", "get", "agent.limits.steps"]) == 0
    assert capsys.readouterr().out == "12\n"
    assert run(["config", "unset", "agent.limits.steps"]) == 0
    assert run(["config", "unset", "agent.limits.steps"]) == 0
    capsys.readouterr()
    assert run(["config", "get", "agent.limits.steps"]) == 0
    assert capsys.readouterr().out == "200\n"


def test_get_shows_what_is_in_force(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMPET_MODEL", "a/b")
    assert run(["config", "get"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert 'agent.model = "a/b"' in lines
    assert "models.purposes.chat.temperature = null" in lines


def test_secrets_in_the_file_are_hidden_unless_asked_for(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "set", "providers.x.api_key", "sk-literal"]) == 0
    assert "secret:NAME" in capsys.readouterr().err
    assert run(["config", "get", "providers.x.api_key"]) == 0
    assert run(["config", "get"]) == 0
    assert "sk-literal" not in capsys.readouterr().out
    assert run(["config", "get", "providers.x.api_key", "--show-secrets"]) == 0
    assert capsys.readouterr().out == "sk-literal\n"


def test_a_value_can_come_from_standard_input(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.__dict__, "stdin", io.StringIO("env:MY_KEY\n"))
    assert run(["config", "set", "providers.x.api_key", "-"]) == 0
    assert 'api_key = "env:MY_KEY"' in (home / "config.toml").read_text()


@pytest.mark.parametrize("command", [["get", "agent.modle"], ["set", "agent.modle", "x"], ["unset", "agent.modle"]])
def test_a_mistyped_key_is_an_error_with_a_suggestion(
    home: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", *command]) == 2
    assert "Did you mean agent.model?" in capsys.readouterr().err


def test_validate_tells_what_is_wrong_and_where(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "validate"]) == 0
    assert "does not exist" in capsys.readouterr().out
    home.mkdir()
    (home / "config.toml").write_text("[agent]\nlimits.steps = 'x'\n")
    assert run(["config", "validate"]) == 2
    assert "config.toml, line 2, agent.limits.steps: expected a whole number, got text" in capsys.readouterr().err


def test_path_and_the_option_config(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "path"]) == 0
    assert run(["--config", str(tmp_path / "other.toml"), "config", "path"]) == 0
    assert capsys.readouterr().out.split() == [str(home / "config.toml"), str(tmp_path / "other.toml")]


def test_a_broken_file_stops_a_command_with_line_and_key(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    (home / "config.toml").write_text("[agent]\nmodel = \n")
    assert run(["config", "get"]) == 2
    assert "line 2, model: invalid value" in capsys.readouterr().err


def test_a_named_file_that_is_not_there_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", str(home / "none.toml"), "config", "get", "agent.limits.steps"]) == 0
    assert "none.toml does not exist" in capsys.readouterr().err


def test_every_command_that_is_advised_names_a_setting_that_exists() -> None:
    source = Path(__file__).parents[2]
    texts = [path.read_text() for path in (source / "src").rglob("*.py")]
    texts += [path.read_text() for path in [*(source / "docs").glob("*.md"), source / "README.md"]]
    keys = {key for text in texts for key in re.findall(r"config (?:set|get|unset) ([a-z_]+(?:\.[a-z_{}]+)*)", text)}
    known = [name.replace("<name>", "[^.]+") for name, _ in check.known_keys(Settings, "")]
    strange = [
        key for key in sorted(keys) if not any(re.match(name, key) or re.match(re.escape(key), name) for name in known)
    ]
    assert strange == []
