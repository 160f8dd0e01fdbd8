"""`limpet mcp`: add, list, import, test, log, remove."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.app import CHECKS, COMMANDS
from limpet.cli import run
from limpet.testing.mcp import FakeServer


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "home"


def limpet(*arguments: str) -> int:
    return run(["mcp", *arguments], commands=COMMANDS, checks=CHECKS, opener="limpet.wiring:open_assistant")


def test_a_server_is_added_tried_listed_and_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeServer(tmp_path / "a", [{"name": "echo", "description": "Say it again."}])
    assert limpet("add", "--env", "KEY=env:PATH", "mine", fake.command, *fake.args) == 0
    assert "mcp_mine_echo  Say it again." in capsys.readouterr().out
    assert limpet("list") == 0
    assert "mine  1 tools, last started" in capsys.readouterr().out
    assert limpet("add", "mine", "other") == 2
    assert limpet("remove", "mine") == 0
    assert limpet("list") == 0
    assert "No servers." in capsys.readouterr().out


def test_one_that_fails_says_why_and_its_log_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeServer(tmp_path / "a", exit=1, say="no licence\n")
    assert limpet("add", "mine", fake.command, *fake.args) != 0
    assert "no licence" in capsys.readouterr().err
    limpet("list")
    assert "no licence" in capsys.readouterr().out
    assert limpet("log", "mine") == 0
    assert capsys.readouterr().out == "no licence\n"


def test_servers_of_others_are_taken_over_and_ours_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = tmp_path / "claude_desktop_config.json"
    theirs.write_text('{"mcpServers": {"a b": {"command": "x", "env": {"T": "${HOME}"}}, "bad": {"command": 1}}}')
    assert limpet("import", str(theirs)) == 0
    assert limpet("import", str(theirs)) == 0
    assert "already" in capsys.readouterr().out
    limpet("list")
    assert "a b  never started" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("test", "no"), ("remove", "no"), ("log", "no"), ("list", "no"), ("add", "no")])
def test_mistakes_are_told(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet(*arguments) == 2
    assert capsys.readouterr().err


def test_a_server_made_with_the_sdk_works_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "server.py"
    program.write_text(
        "from mcp.server import MCPServer\nserver = MCPServer('Demo')\n"
        "@server.tool()\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\nserver.run()\n"
    )
    assert limpet("add", "real", sys.executable, str(program)) == 0
    assert "mcp_real_add  Add." in capsys.readouterr().out
