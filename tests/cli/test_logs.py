"""What is logged: where it goes, and that no secret goes with it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator
from pathlib import Path

import click
import pytest

from limpet.cli import run
from limpet.cli.logs import HomeLog, prepare_logging, without_secrets
from limpet.config.paths import find_home, prepare_home

KEY = "sk-very/secret+key"
log = logging.getLogger("limpet.some.part")


@click.command()
def broken() -> None:
    raise ZeroDivisionError(f"while using {os.environ['OPENAI_API_KEY']}")


TABLE = {"broken": (f"{__name__}:broken", "Breaks.")}


@pytest.fixture(autouse=True)
def _secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    prepare_home(find_home(os.environ))
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def lines(home: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (home / "logs" / "limpet.log").read_text().splitlines()]


def test_an_error_nobody_expected_is_a_sentence_and_its_traceback_is_kept(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["broken"], commands=TABLE) == 1
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert "ZeroDivisionError: while using [secret:OPENAI_API_KEY]" in shown
    assert str(home / "logs" / "limpet.log") in shown
    assert "Traceback" in str(lines(home)[0]["text"])
    assert KEY not in (home / "logs" / "limpet.log").read_text()


def test_verbose_shows_records_without_secrets(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare_logging(find_home(os.environ), os.environ, verbose=True)
    log.info("asking with %s and %s", KEY, "sk-very%2Fsecret%2Bkey")
    shown = capsys.readouterr().err
    assert shown.count("[secret:OPENAI_API_KEY]") == 2
    assert "secret+key" not in shown
    assert not (home / "logs" / "limpet.log").exists(), "what is only information is not kept"


def test_secrets_of_the_configuration_are_known_too(home: Path) -> None:
    (home / "config.toml").write_text('[channels.chat]\nbot_token = "tvly-AAAA1111BBBB"\n')
    prepare_logging(find_home(os.environ), os.environ, verbose=False)
    log.warning("token tvly-AAAA1111BBBB")
    assert lines(home)[0]["text"] == "token [secret:channels.chat.bot_token]"
    assert without_secrets("tvly-AAAA1111BBBB") == "[secret:channels.chat.bot_token]"


def test_the_log_is_private_and_does_not_grow_for_ever(home: Path) -> None:
    handler = HomeLog(find_home(os.environ), largest=10)
    for word in ("one", "two", "three"):
        handler.handle(logging.makeLogRecord({"msg": word, "levelno": logging.WARNING, "levelname": "WARNING"}))
    assert [line["text"] for line in lines(home)] == ["three"]
    assert sorted(os.listdir(home / "logs")) == ["limpet.log", "limpet.log.1"]
    assert (home / "logs" / "limpet.log").stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    prepare_logging(find_home({"LIMPET_HOME": str(tmp_path / "none")}), {}, verbose=False)
    log.warning("nobody hears this")
    assert not (tmp_path / "none").exists()
