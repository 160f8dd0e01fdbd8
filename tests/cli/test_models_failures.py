"""`limpet models trace` and `limpet models learned`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.app import COMMANDS
from limpet.cli import run
from limpet.config.secrets import SecretRedactor
from limpet.store.driver import Store, StoreSettings
from limpet.store.learned import StoredLessons
from limpet.store.migrations import MIGRATIONS
from limpet.store.traces import StoredTraces
from limpet.testing.clock import FakeClock
from limpet.types.profile import Profile
from limpet.types.trace import Extract, Trace

PROFILE = Profile(provider="p", wire="openai_chat", model="m", base_url="http://x/v1")
TRACE = Trace(
    session="s1",
    provider="p",
    model="m",
    reason="UpstreamError: oops",
    url="http://x/v1",
    headers={"Accept": "json"},
    request=Extract('{"a":1}'),
    status=500,
    answer_headers={"Server": "fake"},
    answer=Extract("begin", 7, "end"),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def filled(home: Path) -> None:
    async def main() -> None:
        store = Store.open(str(home / "limpet.db"), process="one")
        await StoredTraces(store, FakeClock(), SecretRedactor({})).keep(TRACE)
        await StoredLessons(store, FakeClock(), SecretRedactor({})).refuses(PROFILE, "temperature", reason="not here")
        await StoredLessons(store, FakeClock(), SecretRedactor({})).has_window(PROFILE, 4_096, reason="too long")
        await store.close()

    asyncio.run(main())


def models(*arguments: str) -> int:
    return run(["models", *arguments], commands=COMMANDS)


def test_failures_are_listed(filled: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("trace") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.split()[0] == "1"
    assert first.endswith("p/m  500  UpstreamError: oops")


@pytest.mark.parametrize("which", ["1", "last"])
def test_one_is_shown_as_it_went_over_the_wire(filled: None, which: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("trace", which) == 0
    out = capsys.readouterr().out
    for line in ("> POST http://x/v1", "> Accept: json", '{"a":1}', "< 500", "< Server: fake", "… 7 bytes left out …"):
        assert line in out


def test_programs_get_json(filled: None, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert models("trace", "--json") == 0
    assert json.loads(capfdbinary.readouterr().out)["reason"] == "UpstreamError: oops"
    assert models("trace", "last", "--json") == 0
    assert json.loads(capfdbinary.readouterr().out)["answer"] == {"head": "begin", "omitted": 7, "tail": "end"}


@pytest.mark.parametrize("which", ["2", "first", "last"])
def test_one_that_is_not_there(which: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("trace", which) == 2
    assert "There is no trace" in capsys.readouterr().err


def test_traces_can_be_forgotten(filled: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("trace", "--clear") == models("trace") == 0
    assert capsys.readouterr().out == "1 traces forgotten.\nNo request to a model has failed.\n"


def test_lessons_are_listed_and_forgotten(filled: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert models("learned") == 0
    out = capsys.readouterr().out
    assert "p/m is asked without `temperature`" in out
    assert "p/m has a window of 4,096 tokens" in out
    assert models("learned", "--forget", "p/m") == models("learned") == 0
    assert capsys.readouterr().out.endswith("Nothing was learned yet.\n")
    assert models("learned", "--forget", "p/m") == 2


def test_a_database_of_an_older_version_is_brought_up_to_date(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        settings = StoreSettings(migrations=MIGRATIONS[:2])
        await Store.open(str(home / "limpet.db"), process="one", settings=settings).close()

    asyncio.run(main())
    assert models("trace") == run(["usage"], commands=COMMANDS) == 0
    assert capsys.readouterr().out == "No request to a model has failed.\nNothing was used.\n"
