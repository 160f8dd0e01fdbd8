"""`limpet models update`, and what it changes for the models in use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from limpet.app import CHECKS, COMMANDS
from limpet.cli import run

DEV = {
    "openai": {
        "models": {
            "gpt-4o": {"limit": {"context": 64_000, "output": 16_384}, "cost": {"input": 1, "output": 2}},
            "gpt-99": {"limit": {"context": 2_000_000}, "reasoning": True},
        }
    }
}


def limpet(*arguments: str) -> int:
    return run(arguments, commands=COMMANDS, checks=CHECKS, opener="limpet.wiring:open_assistant")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(DEV))
    return path


def test_a_newer_catalog_is_used_at_once(home, source, monkeypatch, capsys) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert limpet("models", "update", str(source)) == 0
    out = capsys.readouterr().out
    assert f"2 models of 1 providers, from {source}" in out
    assert "1 added, 1 changed, 0 removed." in out
    assert "~ openai/gpt-4o" in out
    assert limpet("models", "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("openai/gpt-4o ") and "64,000 tokens; $1/$2" in line for line in lines)
    assert any(line.startswith("openai/gpt-99 ") and "2,000,000 tokens; reasons" in line for line in lines)


def test_what_is_gone_since_the_last_time_is_said(home, source, capsys) -> None:
    assert limpet("models", "update", str(source)) == 0
    source.write_text(json.dumps({"openai": {"models": {"gpt-99": DEV["openai"]["models"]["gpt-99"]}}}))
    capsys.readouterr()
    assert limpet("models", "update", str(source)) == 0
    out = capsys.readouterr().out
    assert "0 added, 0 changed, 1 removed." in out
    assert "- openai/gpt-4o" in out


@pytest.mark.parametrize("bad", ["<html>", "{}", '{"date":"d","source":"s","models":{"openai":{"m":{"window":-"}}}}'])
def test_a_bad_catalog_changes_nothing(home, source, bad, capsys) -> None:
    assert limpet("models", "update", str(source)) == 0
    before = (home / "catalog.json").read_bytes()
    source.write_text(bad)
    assert limpet("models", "update", str(source)) == 2
    assert str(source) in capsys.readouterr().err
    assert (home / "catalog.json").read_bytes() == before


def test_without_a_source_it_says_what_to_give(home, capsys) -> None:
    assert limpet("models", "update") == 2
    assert "models.dev/api.json" in capsys.readouterr().err
    assert not home.exists()


def test_a_damaged_catalog_of_before_is_replaced(home, source, capsys) -> None:
    home.mkdir()
    (home / "catalog.json").write_text("{")
    assert limpet("models", "update", str(source)) == 0
    assert "was damaged" in capsys.readouterr().err


def test_all_shows_what_is_known_of_every_provider(home, capsys) -> None:
    assert limpet("models", "list", "--all") == 0
    out = capsys.readouterr().out
    assert "moonshot/kimi-k3" in out
    assert "groq/openai/gpt-oss-120b" in out
