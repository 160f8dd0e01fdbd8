"""SIGKILL around an approval: nothing runs without a yes, nothing runs twice, and the turn still ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from tests.crash.processes import child, lines, rows
from tests.crash.test_kill import script

LAST = 42
"""More steps than the turn has; most lie around the question."""


@pytest.mark.parametrize("word", ["once", "deny"])
@pytest.mark.parametrize("step", range(9, LAST, 3))
def test_killed_around_an_approval(tmp_path: Path, step: int, word: str) -> None:
    async def main() -> None:
        async with FakeAnthropic(script) as server:
            code, printed = await child(tmp_path, server.base_url, step, "m1", "do it", WORD=word)
            assert code == -9 or int(printed) < step
            acted = lines(tmp_path / "side.txt")
            said = rows(tmp_path, "SELECT outcome FROM approvals")
            assert not acted or said == [("once",)]
            await child(tmp_path, server.base_url, 0, "m1", "do it", WORD=word)
            assert server.refusals == []

    asyncio.run(main())
    assert rows(tmp_path, "SELECT state FROM turns") == [("done",)]
    assert [row[0] for row in rows(tmp_path, "SELECT outcome FROM approvals")] in (["once"], ["deny"])
    assert lines(tmp_path / "side.txt") in ([[], ["a"]] if word == "once" else [[]])
    assert rows(tmp_path, "SELECT count(*) FROM entries WHERE kind = 'tool_result'") == [(3,)]
    assert rows(tmp_path, "SELECT text FROM outbox") == [("all done",)]
