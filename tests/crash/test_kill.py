"""SIGKILL before and after every commit, every request and every part shown: the turn still ends, once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.crash.processes import child, lines, rows

STEPS = range(18, 29)
"""How many steps the whole turn of `child.py` has: commits of parallel calls share a group, or not."""


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
def test_c19_killed_at_any_step_the_turn_still_ends_once(tmp_path: Path, step: int) -> None:
    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(tmp_path, server.base_url, step, "m1", "do it")
            assert code == -9 or int(printed) < step
            await child(tmp_path, server.base_url, 0, "m1", "do it")
            await child(tmp_path, server.base_url, 0, "m2", "and again")
            check(tmp_path, server)

    asyncio.run(main())
