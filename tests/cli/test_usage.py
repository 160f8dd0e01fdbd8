"""`limpet usage`: what the database says, in every form."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import sqlite3
import time
from pathlib import Path

import pytest

from limpet.app import COMMANDS
from limpet.cli import run
from limpet.store import usage
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.usage import Reservation
from limpet.types.usage import Usage


def fill(home: Path, now: int) -> None:
    """Three requests: two of a model with a price, one of a model without; and one that was killed."""

    async def main() -> None:
        owner = Owner(str(home / "run"))
        store = Store.open(str(home / "limpet.db"), process=owner.name)
        used = [
            ("a", "m1", Usage(input=100, cache_read=300, output=10, cost=2_000_000)),
            ("b", "m1", Usage(input=100, cache_read=100, output=10, cost=500_000)),
            ("c", "m2", Usage(input=50, output=5)),
        ]
        for name, model, found in used:
            row = Reservation(id=name, session="s1", turn="t1", provider="p", model=model)
            await store.write(lambda c, row=row: usage.reserve(c, row, owner=owner, now=now))
            await store.write(lambda c, name=name, found=found: usage.settle(c, name, found, state="done"))
        lost = Reservation(id="d", session="s1", turn="t1", provider="p", model="m1")
        await store.write(lambda c: usage.reserve(c, lost, owner=owner, now=now))
        await store.close()
        owner.close()

    asyncio.run(main())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    fill(tmp_path, time.time_ns() // 1_000_000)
    return tmp_path


def test_the_table_has_a_row_per_model_a_sum_and_remarks(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["usage", "--by", "model"], commands=COMMANDS) == 0
    head, first, second, total, *remarks = capsys.readouterr().out.splitlines()
    assert head.split() == ["requests", "input", "cached", "hit", "rate", "output", "cost"]
    assert first.split() == ["p/m1", "3", "600", "400", "67%", "20", "$2.5000"]
    assert second.split() == ["p/m2", "1", "50", "0", "0%", "5", "?"]
    assert total.split() == ["all", "4", "650", "400", "62%", "25", "$2.5000"]
    assert len(remarks) == 2


def test_csv_and_json_say_the_same(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["usage", "--format", "csv"], commands=COMMANDS) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert run(["usage", "--format", "json"], commands=COMMANDS) == 0
    (same,) = json.loads(capsys.readouterr().out)
    assert {key: str(value) for key, value in same.items()} == row
    assert same["dollars"] == 2.5


def test_the_chart_fits_a_narrow_terminal(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["usage", "--format", "chart", "--by", "model"], commands=COMMANDS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[0].count("#") > lines[1].count("#")


def test_nothing_used(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    assert run(["usage"], commands=COMMANDS) == 0
    assert capsys.readouterr().out == "Nothing was used.\n"


def test_what_is_estimated_is_marked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def cut() -> None:
        owner = Owner(str(home / "run"))
        store = Store.open(str(home / "limpet.db"), process=owner.name)
        row = Reservation(id="e", session="s1", turn="t1", provider="p", model="m3")
        await store.write(lambda c: usage.reserve(c, row, owner=owner, now=time.time_ns() // 1_000_000))
        used = Usage(input=10, output=1, cost=1_000_000)
        await store.write(lambda c: usage.settle(c, "e", used, state="failed", estimated=True))
        await store.close()
        owner.close()

    asyncio.run(cut())
    assert run(["usage", "--by", "model"], commands=COMMANDS) == 0
    _, first, _, third, total, *remarks = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in (first, third, total)] == ["$2.5000", "~$1.0000", "~$3.5000"]
    assert any(remark.startswith("1 requests were cut off or killed") for remark in remarks)


@pytest.mark.parametrize(("version", "code", "words"), [(0, 0, "Nothing was used."), (999, 4, "newer Limpet")])
def test_a_database_that_is_empty_or_newer(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    version: int,
    code: int,
    words: str,
) -> None:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    connection = sqlite3.connect(tmp_path / "limpet.db")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert run(["usage"], commands=COMMANDS) == code
    shown = capsys.readouterr()
    assert words in shown.out + shown.err
