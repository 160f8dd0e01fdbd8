"""SIGKILL at any step of a turn that summarises: nothing is lost, no note is written twice, the turn ends once."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.script import Reply, Seen
from tests.crash.processes import child, lines, rows

WINDOW = {"WINDOW": "4000"}
DIGEST = "<notes>\n- The cat is called Miso.\n</notes>\n<summary>\nTales were told.\n</summary>"


def script(seen: Seen) -> Reply:
    text = seen.raw.decode()
    if "housekeeping" in text:
        return Reply(text=(DIGEST,))
    return Reply(text=("enough",) if "stop now" in text else ("tale " * 500,), usage=(0, 0))


def told(home: Path) -> list[str]:
    """Every line of the day's notes, without what it says of itself."""
    return [line.split(" <!--")[0] for file in (home / "memory").glob("????-??-??.md") for line in lines(file)]


@pytest.fixture(scope="module")
def long_talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the next message does not fit any more, and nothing was summarised yet."""
    home = tmp_path_factory.mktemp("long")

    async def main() -> None:
        async with FakeAnthropic(script) as server:
            for number in range(6):
                await child(home, server.base_url, 0, f"before{number}", "go on", **WINDOW)

    asyncio.run(main())
    assert rows(home, "SELECT count(*) FROM entries WHERE kind = 'compaction'") == [(0,)]
    return home


@pytest.mark.parametrize("step", range(1, 22))
def test_killed_at_any_step_of_a_reduction(long_talk: Path, tmp_path: Path, step: int) -> None:
    home = tmp_path / "home"
    shutil.copytree(long_talk, home, ignore=shutil.ignore_patterns("*.sock"))

    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(home, server.base_url, step, "last", "stop now", **WINDOW)
            assert code == -9 or int(printed) < step
            await child(home, server.base_url, 0, "last", "stop now", **WINDOW)
            assert server.refusals == []

    asyncio.run(main())
    assert told(home).count("- The cat is called Miso.") == 1
    assert rows(home, "SELECT count(*) FROM entries WHERE kind = 'compaction'") >= [(1,)]
    assert rows(home, "SELECT DISTINCT state FROM turns") == [("done",)]
    assert rows(home, "SELECT count(*) FROM outbox WHERE text = 'enough'") == [(1,)]
    assert rows(home, "SELECT DISTINCT state FROM inbox") == [("done",)]
