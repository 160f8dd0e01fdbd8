"""SIGKILL before and after every commit and request of a conversation with a helper: its result is heard of, once."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.crash.processes import ROOT, finish, rows

STEPS = 33
"""At least as many as the whole of `subagents_child.py` has."""


def script(seen: Seen) -> Reply:
    """A main agent that spawns a helper and says so, the helper, and the main agent when it has heard of it."""
    text = seen.raw.decode()
    if "[Task from the main agent]" in text:
        return Reply(text=("the sea is blue",))
    if "helper_result" in text:
        return Reply(text=("heard of it",))
    if "tool_result" in text:
        return Reply(text=("on it",))
    return Reply(calls=(Call("spawn", '{"task": "look at the sea"}'),))


async def child(folder: Path, url: str, kill_at: int) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.crash.subagents_child", str(folder), url, str(kill_at), "m1", "what colour is the sea?"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    code, printed, _ = await finish(process)
    return code, printed


@pytest.mark.parametrize("step", range(1, STEPS))
def test_c58d_killed_at_any_step_the_result_is_heard_of_once(tmp_path: Path, step: int) -> None:
    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(tmp_path, server.base_url, step)
            assert code == -9 or int(printed) < step
            code, _ = await child(tmp_path, server.base_url, 0)
            assert code == 0
            assert server.refusals == []

    asyncio.run(main())
    assert rows(tmp_path, "SELECT state, answer FROM helpers") == [("done", "the sea is blue")]
    assert rows(tmp_path, "SELECT DISTINCT state FROM inbox") == [("done",)]
    assert rows(tmp_path, "SELECT count(*) FROM inbox WHERE event LIKE 'helper:%'") == [(1,)]
    said = [str(text) for (text,) in rows(tmp_path, "SELECT text FROM outbox ORDER BY id")]
    assert said.count("heard of it") == 1
    assert set(said) <= {"on it", "heard of it"}
    assert rows(tmp_path, "SELECT DISTINCT state FROM turns") == [("done",)]
