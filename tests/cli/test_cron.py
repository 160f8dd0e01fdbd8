"""`limpet cron`: what people see of jobs, and how they make and change them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.app import COMMANDS
from limpet.cli import run
from limpet.cli.cron_command import calendar
from limpet.schedule import when
from limpet.types.envelope import Mandate
from limpet.types.job import Job, JobRow
from tests.schedule.world import ms

Limpet = Callable[..., tuple[int, str, str]]


@pytest.fixture
def limpet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Limpet:
    """`limpet cron` in this process, on a home in Tokyo: exit code, output and errors."""
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text('user.timezone = "Asia/Tokyo"\n')

    def command(*arguments: str) -> tuple[int, str, str]:
        code = run(["cron", *arguments], commands=COMMANDS)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_what_is_made_is_confirmed_listed_and_in_the_calendar(limpet: Limpet) -> None:
    code, out, _ = limpet("add", "Sum up the news", "--cron", "30 8 * * *", "--name", "news")
    assert code == 0
    assert out.count("08:30 Asia/Tokyo") == 3
    assert "Its answers go to your newest chat." in out
    assert "08:30 Asia/Tokyo" in limpet("list")[1]
    days = limpet("next", "--days", "3")[1].splitlines()
    assert [line for line in days if line.startswith("  ")] == ["  08:30  news"] * 3


def test_pause_resume_edit_and_remove(limpet: Limpet) -> None:
    limpet("add", "Look", "--every", "2h", "--name", "look")
    assert limpet("pause", "look")[1] == "look is paused.\n"
    assert "paused" in limpet("list")[1]
    assert "Nothing is due" in limpet("next")[1]
    assert "Next:" in limpet("resume", "look")[1]
    assert "every 3h" in (limpet("edit", "look", "--every", "3h", "--grace", "1h"), limpet("list"))[1][1]
    assert json.loads(limpet("list", "--json")[1])["job"]["conduct"] == {"grace": 3_600_000}
    assert limpet("remove", "look")[1] == "look is removed.\n"
    assert limpet("list")[1] == "There are no jobs.\n"


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("add", "x"), "exactly one of at, every and cron"),
        (("add", "x", "--at", "7:30", "--zone", "Mars/Base"), "no time zone 'Mars/Base'"),
        (("add", "x", "--cron", "61 * * * *"), "the minute '61' cannot be"),
        (("add", "x", "--every", "10s"), "once a minute at the most"),
        (("add", "x", "--at", "2001-01-01"), "is over"),
        (("add", "x", "--every", "1h", "--agent", "nobody"), "no agent 'nobody'"),
        (("add", "x", "--every", "1h", "--name", "heartbeat"), "kept for Limpet's own heartbeat"),
        (("add", "x", "--every", "1h", "--model", "nope/nope"), "names no known provider"),
        (("remove", "nothing"), "There are no jobs"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(limpet: Limpet, arguments: tuple[str, ...], wrong: str) -> None:
    code, out, errors = limpet(*arguments)
    assert code == 2
    assert not out
    assert wrong in errors


def test_a_chat_that_nobody_knows_is_refused(limpet: Limpet) -> None:
    code, out, errors = limpet("add", "x", "--every", "1h", "--to", "nowhere")
    assert (code, out) == (1, "")
    assert "nowhere" in errors


def test_changes_stand_in_the_audit(limpet: Limpet, tmp_path: Path) -> None:
    limpet("add", "secret words", "--every", "2h", "--name", "look", "--allow", "exec", "--tool", "web_*")
    limpet("edit", "look", "--allow", "web_fetch")
    limpet("pause", "look")
    limpet("run", "look")
    limpet("remove", "look")
    with sqlite3.connect(tmp_path / "limpet.db") as connection:
        rows = connection.execute("SELECT detail FROM audit WHERE act = 'job.changed' ORDER BY id").fetchall()
    assert [detail for (detail,) in rows] == [
        "add by=cli grants=exec tools=web_* to=last", "edit by=cli grants=web_fetch tools=web_* to=last",
        "pause by=cli", "remove by=cli",
    ]  # fmt: skip


def test_a_job_in_the_main_session(limpet: Limpet) -> None:
    limpet("add", "Look", "--every", "2h", "--main")
    assert json.loads(limpet("list", "--json")[1])["job"]["key"] == "agent:main:main"


def row(name: str, said: str, now: int) -> JobRow:
    schedule = when.schedule("every" if said[0].isdigit() and " " not in said else "cron", said, zone="UTC", now=now)
    return JobRow(Job(name, name, "main", schedule, "", "", Mandate(name, name)), "active", now, 0, 0, "", now)


def test_a_calendar_shows_local_days_and_counts_what_comes_often() -> None:
    now = ms("2026-05-01T20:00Z")
    rows = [row("daily", "0 22 * * *", now), row("often", "30m", now)]
    assert calendar(rows, zone="Asia/Tokyo", now=now, days=1).splitlines() == [
        "Sat 2026-05-02",
        "  05:30  often (37 times)",
        "  07:00  daily",
        "Sun 2026-05-03",
        "  00:00  often (11 times)",
    ]


def test_a_calendar_is_as_long_as_it_is_asked_for() -> None:
    now = ms("2026-05-01T20:00Z")
    found = calendar([structs.replace(row("d", "0 22 * * *", now))], zone="UTC", now=now, days=7)
    assert sum(line.startswith("  ") for line in found.splitlines()) == 7
