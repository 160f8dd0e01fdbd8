"""`limpet models`: list, test, set, alias."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from limpet.app import CHECKS, COMMANDS
from limpet.cli import run
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply, Seen


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY", "LIMPET_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    return tmp_path


def limpet(*arguments: str) -> int:
    return run(arguments, commands=COMMANDS, checks=CHECKS, opener="limpet.wiring:open_assistant")


@contextmanager
def serving() -> Iterator[str]:
    """The address of a fake on a loop of its own, since commands run theirs."""

    def answer(seen: Seen) -> Reply:
        return Reply(text=("OK",))

    loop, server = asyncio.new_event_loop(), FakeOpenAI(answer)
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        yield server.base_url
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with serving() as base_url:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        yield base_url


def test_list_says_which_is_used_and_which_could_be(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "list") == 0
    out = capsys.readouterr().out
    assert "openai          OpenAI; OPENAI_API_KEY is set" in out
    assert "needs ANTHROPIC_API_KEY" in out


def test_list_of_a_provider_asks_it(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "list", "openai") == 0
    assert capsys.readouterr().out.startswith("openai/")


def test_list_of_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "list", "nobody") == 2
    assert "no provider Limpet knows" in capsys.readouterr().err


def test_test_asks_once_and_counts_it(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "test", "openai/gpt-5-mini") == 0
    assert "openai/gpt-5-mini answered: 'OK'" in capsys.readouterr().out
    assert limpet("usage", "--by", "model", "--format", "csv") == 0
    assert "openai/gpt-5-mini,1," in capsys.readouterr().out


def test_a_short_name_can_be_used_and_set(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "alias", "fast", "openai/gpt-5-mini") == 0
    assert limpet("models", "set", "fast") == 0
    assert "From now on: openai/gpt-5-mini." in capsys.readouterr().out
    assert limpet("agent", "-m", "hi", "--model", "fast") == 0
    assert limpet("agent", "-m", "hi") == 0
    assert capsys.readouterr().out == "OK\nOK\n"
    assert limpet("models", "alias", "fast") == 0
    assert limpet("models", "alias", "fast") == 0
    assert capsys.readouterr().out == "fast is forgotten.\nThere is no short name fast.\n"


@pytest.mark.parametrize("arguments", [("set", "nothing/at/all"), ("alias", "a b", "openai/x"), ("alias", "x", "y/z")])
def test_what_cannot_be_is_refused_and_nothing_is_written(home: Path, arguments: tuple[str, ...]) -> None:
    assert limpet("models", *arguments) == 2
    assert not (home / "config.toml").exists()


def test_a_purpose_has_a_model_of_its_own(address: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert limpet("models", "set", "--for", "summary", "openai/gpt-5-nano") == 0
    assert "for summary: openai/gpt-5-nano" in capsys.readouterr().out
    assert limpet("models", "list") == 0
    assert "summary  openai/gpt-5-nano" in capsys.readouterr().out
    assert limpet("models", "set", "--for", "chat", "openai/gpt-5-nano") == 2


@pytest.mark.parametrize(("reference", "words"), [("", "Say which model"), (" ", "Say which"), ("openai/", "no model")])
def test_set_wants_a_model(home: Path, capsys: pytest.CaptureFixture[str], reference: str, words: str) -> None:
    assert limpet("models", "set", reference) == 2
    assert words in capsys.readouterr().err
    assert not (home / "config.toml").exists()
