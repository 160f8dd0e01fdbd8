"""`limpet onboard`, answered by options."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from limpet.cli import run
from limpet.cli.onboard_ask import Answers, ask, decide
from limpet.config.load import load_settings
from limpet.config.secrets import resolve


def test_without_answers_it_makes_a_workspace_and_writes_no_settings(home: Path) -> None:
    assert run(["onboard", "--yes", "--no-test"]) == 0
    assert (home / "workspace" / "BOOTSTRAP.md").exists()
    assert not (home / "config.toml").exists()


def test_every_answer_is_an_option(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    workspace = tmp_path / "notes"
    answers = ["--name", "Ada", "--timezone", "Europe/Lisbon", "--workspace", str(workspace)]
    assert run(["onboard", "--yes", "--no-test", *answers, "--provider", "openai", "--model", "gpt-5"]) == 0
    settings = load_settings(home / "config.toml", {}).settings
    assert (settings.user.name, settings.user.timezone) == ("Ada", "Europe/Lisbon")
    assert settings.agent.workspace == str(workspace)
    assert settings.agent.model == "openai/gpt-5"
    assert settings.providers["openai"].api_key == "env:OPENAI_API_KEY"
    assert (workspace / "SOUL.md").exists()


def test_a_key_goes_into_the_store_of_secrets(home: Path) -> None:
    assert run(["onboard", "--yes", "--no-test", "--provider", "anthropic", "--api-key", "sk-ant-secret"]) == 0
    files = [path for path in home.rglob("*") if path.is_file()]
    assert not [path for path in files if b"sk-ant-secret" in path.read_bytes()]
    reference = load_settings(home / "config.toml", {}).settings.providers["anthropic"].api_key
    assert (reference, resolve(reference, key="k", root=home, environ={})) == ("secret:anthropic", "sk-ant-secret")


def test_running_again_changes_only_what_is_answered(home: Path) -> None:
    assert run(["onboard", "--yes", "--no-test", "--name", "Ada", "--provider", "ollama"]) == 0
    (home / "workspace" / "BOOTSTRAP.md").unlink()
    (home / "workspace" / "SOUL.md").write_text("mine")
    assert run(["onboard", "--yes", "--no-test", "--name", "Eve"]) == 0
    settings = load_settings(home / "config.toml", {}).settings
    assert settings.user.name == "Eve"
    assert settings.providers["ollama"].base_url == "http://127.0.0.1:11434/v1"
    assert not (home / "workspace" / "BOOTSTRAP.md").exists()
    assert (home / "workspace" / "SOUL.md").read_text() == "mine"


def test_running_again_keeps_a_server_of_ones_own(home: Path) -> None:
    address = "http://10.0.0.7:8000/v1"
    for name in ("mine", "ollama"):
        assert run(["onboard", "--yes", "--no-test", "--provider", name, "--base-url", address]) == 0
        assert run(["onboard", "--yes", "--no-test", "--provider", name, "--model", "small"]) == 0
        assert load_settings(home / "config.toml", {}).settings.providers[name].base_url == address


def test_enter_keeps_every_answer(home: Path, tmp_path: Path) -> None:
    first = ["--name", "Ada", "--timezone", "Europe/Lisbon", "--provider", "mine", "--model", "small"]
    assert run(["onboard", "--yes", "--no-test", *first, "--base-url", "http://10.0.0.7:8000/v1"]) == 0
    before = load_settings(home / "config.toml", {}).settings
    loaded = load_settings(home / "config.toml", {})
    with CliRunner().isolation(input="\n" * 8):
        answers = ask(Answers(), loaded)
    assert decide(answers, loaded).values
    assert run(["onboard", "--yes", "--no-test", "--provider", answers.provider, "--model", answers.model]) == 0
    assert load_settings(home / "config.toml", {}).settings == before


def test_a_time_zone_that_does_not_exist_is_asked_for_again(home: Path) -> None:
    loaded = load_settings(home / "config.toml", {})
    with CliRunner().isolation(input="Ada\nAtlantis\nEurope/Lisbon\n\nlater\n\nlater\n"):
        assert ask(Answers(), loaded).timezone == "Europe/Lisbon"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--timezone", "Atlantis"], "no time zone Atlantis"),
        (["--provider", "unheard"], "no provider Limpet knows"),
        (["--workspace", "/dev/null"], "not a folder"),
    ],
)
def test_an_answer_that_will_not_do_writes_nothing(
    home: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["onboard", "--yes", "--no-test", *options]) == 2
    assert words in capsys.readouterr().err
    assert not (home / "config.toml").exists()
