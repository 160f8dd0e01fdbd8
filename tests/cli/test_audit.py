"""`limpet audit`: show, verify, export; and who writes rows."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from limpet.app import COMMANDS
from limpet.cli import run
from tests.store.test_audit import written


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    written(tmp_path)
    return tmp_path


def limpet(*arguments: str) -> int:
    return run(arguments, commands=COMMANDS)


def test_show_and_export_give_the_rows(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("audit", "show", "--last", "2") == 0
    assert [line.split("  ")[1:] for line in capsys.readouterr().out.splitlines()] == [
        ["secret.changed", "KEY3"],
        ["secret.changed", "KEY4"],
    ]
    assert limpet("audit", "export", str(home / "out.jsonl")) == 0
    rows = [json.loads(line) for line in (home / "out.jsonl").read_text().splitlines()]
    assert [row["subject"] for row in rows] == ["KEY0", "KEY1", "KEY2", "KEY3", "KEY4"]


def test_verify_says_what_was_changed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("audit", "verify") == 0
    head = capsys.readouterr().out.split("Head: ")[1].split()[0]
    with sqlite3.connect(home / "limpet.db") as connection:
        connection.execute("DELETE FROM audit WHERE id = 5")
    assert limpet("audit", "verify") == 0, "a missing end does not show by itself"
    assert limpet("audit", "verify", "--head", head) == 1
    with sqlite3.connect(home / "limpet.db") as connection:
        connection.execute("UPDATE audit SET subject = 'x' WHERE id = 1")
    assert limpet("audit", "verify") == 1
    assert "row 1 (secret.changed x) was changed" in capsys.readouterr().err


def test_changes_of_settings_are_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("config", "set", "user.timezone", "Europe/Zurich") == 0
    with sqlite3.connect(home / "limpet.db") as connection:
        row = connection.execute("SELECT act, subject FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    assert row == ("config.changed", "user.timezone")


def test_without_a_database_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    assert limpet("audit", "show") == 0
    assert limpet("audit", "verify") == 0
    assert "Nothing yet." in capsys.readouterr().out
