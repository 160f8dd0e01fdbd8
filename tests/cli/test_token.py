"""`limpet token`: made once, listed without what is secret, void when revoked."""

from __future__ import annotations

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
    return run(["token", *arguments], commands=COMMANDS)


def test_a_token_is_shown_once_and_kept_as_a_hash(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("create", "phone", "--scope", "chat", "--days", "3") == 0
    shown = capsys.readouterr().out.strip()
    assert shown.startswith("lpt_")
    secret = shown.split("_", 2)[2]
    assert not [file for file in home.glob("limpet.db*") if secret.encode() in file.read_bytes()]
    assert limpet("list") == 0
    listed = capsys.readouterr().out
    assert "phone" in listed
    assert "chat; all agents; until" in " ".join(listed.split())
    assert secret not in listed


def test_changes_stand_in_the_audit(home: Path) -> None:
    assert limpet("create", "phone") == 0
    assert limpet("revoke", "phone") == 0
    with sqlite3.connect(home / "limpet.db") as connection:
        rows = connection.execute("SELECT act, subject FROM audit ORDER BY id DESC LIMIT 2").fetchall()
    assert rows == [("token.revoked", "phone"), ("token.created", "phone")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("create", "Phone"), "no name for a token"),
        (("create", "server"), "no name for a token"),
        (("create", "phone", "--scope", "everything"), "no scopes"),
        (("create", "phone", "--agent", "nobody"), "no agent nobody"),
        (("revoke", "phone"), "no token phone"),
    ],
)
def test_what_cannot_be_is_said(
    home: Path, arguments: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert limpet(*arguments) == 2
    assert why in capsys.readouterr().err


def test_a_name_is_given_once(home: Path) -> None:
    assert limpet("create", "phone") == 0
    assert limpet("create", "phone") == 2
