"""SIGKILL before and after every commit, every request and every part shown: the turn still ends, once."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import apsw
import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.script import Call, Reply, Seen

STEPS = range(18, 29)
"""How many steps the whole turn of `child.py` has: commits of parallel calls share a group, or not."""
ROOT = Path(__file__).parents[2]


def script(seen: Seen) -> Reply:
    """A model that asks for three calls, then says that it is done; a second message it answers at once."""
    text = seen.raw.decode()
    if "and again" in text:
        return Reply(text=("second",))
    if "tool_result" in text:
        return Reply(text=("all ", "done"))
    return Reply(
        calls=(
            Call("act", '{"word": "a"}'),
            Call("look", '{"word": "b"}'),
            Call("put", '{"path": "out.txt", "text": "new"}'),
        )
    )


async def child(folder: Path, url: str, kill_at: int, *words: str) -> tuple[int, str]:
    """Run `child.py`; its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.crash.child",
        str(folder),
        url,
        str(kill_at),
        *words,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, output.decode().strip()


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(folder / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def check(folder: Path, server: FakeAnthropic) -> None:
    """What must be so however often the process was killed."""
    assert server.refusals == []
    assert [row[0] for row in rows(folder, "SELECT state FROM turns WHERE state NOT IN ('done')")] == []
    assert rows(folder, "SELECT text FROM outbox ORDER BY id") == [("all done",), ("second",)]
    assert rows(folder, "SELECT DISTINCT state FROM inbox") == [("done",)]
    assert lines(folder / "side.txt") in ([], ["a"])
    assert (folder / "out.txt").read_text() == "new"
    shown = lines(folder / "shown.txt")
    states = [row[0] for row in rows(folder, "SELECT state FROM outbox ORDER BY id")]
    assert shown.count("all done") <= 1
    assert shown.count("second") == 1
    assert states[0] == "sent" or states[0] == "unknown"
    assert "all done" in shown or states[0] == "unknown"
    calls = rows(folder, "SELECT count(*) FROM entries WHERE kind = 'tool_result'")
    assert calls == [(3,)], "each call has exactly one result"


def test_the_number_of_steps(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(tmp_path, server.base_url, 0, "m1", "do it")
            assert code == 0
            assert int(printed) in STEPS
            assert lines(tmp_path / "side.txt") == ["a"]
            await child(tmp_path, server.base_url, 0, "m2", "and again")
            check(tmp_path, server)

    asyncio.run(main())


@pytest.mark.parametrize("step", range(1, STEPS.stop))
def test_killed_at_any_step_the_turn_still_ends_once(tmp_path: Path, step: int) -> None:
    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(tmp_path, server.base_url, step, "m1", "do it")
            assert code == -9 or int(printed) < step
            await child(tmp_path, server.base_url, 0, "m1", "do it")
            await child(tmp_path, server.base_url, 0, "m2", "and again")
            check(tmp_path, server)

    asyncio.run(main())
