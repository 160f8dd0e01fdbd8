"""Several processes on one session: one works, the others wait, take over, or stop it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from limpet.testing.fakes.anthropic import FakeAnthropic
from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
from tests.crash.processes import child, finish, limpet, lines, rows, start, until


def acting(seen: Seen) -> Reply:
    """A model that acts once, then is done; slow enough that others can come in between."""
    if "tool_result" in seen.raw.decode():
        return Reply(text=("done",))
    return Reply(calls=(Call("act", '{"word": "a"}'),), delay=0.6)


def test_two_processes_on_one_session_take_turns(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=("ok",), delay=0.3)

    async def main() -> None:
        async with FakeAnthropic(script) as server:
            words = [("m1", "first"), ("m2", "second"), ("m3", "third")]
            processes = [await start(tmp_path, server.base_url, 0, *pair) for pair in words]
            assert [(await finish(process))[0] for process in processes] == [0, 0, 0]
            assert server.refusals == []
        assert rows(tmp_path, "SELECT DISTINCT state FROM inbox") == [("done",)]
        assert rows(tmp_path, "SELECT DISTINCT state FROM turns") == [("done",)]
        texts = [str(row[0]) for row in rows(tmp_path, "SELECT payload FROM entries WHERE kind = 'user'")]
        assert sorted(sum(word in text for text in texts) for _, word in words) == [1, 1, 1]

    asyncio.run(main())


def test_a_stopped_owner_that_was_replaced_writes_and_does_nothing_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic(acting) as server:
            old = await start(tmp_path, server.base_url, 0, "m1", "act")
            await until(lambda: len(server.requests) == 1)
            os.kill(old.pid, signal.SIGUSR1)
            await asyncio.sleep(0.1)
            os.kill(old.pid, signal.SIGSTOP)
            epoch = rows(tmp_path, "SELECT epoch FROM sessions")[0][0]
            code, _ = await child(tmp_path, server.base_url, 0)
            assert code == 0
            assert rows(tmp_path, "SELECT epoch FROM sessions") == [(int(str(epoch)) + 1,)]
            entries = rows(tmp_path, "SELECT count(*) FROM entries")
            os.kill(old.pid, signal.SIGCONT)
            await finish(old)
            assert rows(tmp_path, "SELECT count(*) FROM entries") == entries
        assert lines(tmp_path / "side.txt") == ["a"]
        assert lines(tmp_path / "shown.txt") == ["done"]

    asyncio.run(main())


def test_the_session_of_a_killed_owner_is_free_though_its_helper_lives(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic(acting) as server:
            owner = await start(tmp_path, server.base_url, -1, "m1", "act")
            await until(lambda: len(server.requests) == 1)
            helper = int((tmp_path / "helper.pid").read_text())
            owner.kill()
            await finish(owner)
            os.kill(helper, 0)
            code, _ = await child(tmp_path, server.base_url, 0)
            assert code == 0
            os.kill(helper, signal.SIGKILL)
        assert lines(tmp_path / "shown.txt") == ["done"]

    asyncio.run(main())


@pytest.mark.parametrize("doing", ["asking", "running a command"])
def test_stop_from_a_second_process(tmp_path: Path, doing: str) -> None:
    def script(seen: Seen) -> Reply:
        if doing == "asking":
            return Reply(text=("thinking ", "about it"), stall_after=2)
        return Reply(calls=(Call("exec", '{"command": "sleep 61"}'),))

    async def main() -> None:
        async with FakeOpenAI(script) as server:
            there = {"OPENAI_API_KEY": server.key, "OPENAI_BASE_URL": server.base_url}
            running = await limpet(tmp_path, "agent", "-m", "go", **there)
            started = (
                "SELECT count(*) FROM usage" if doing == "asking" else "SELECT 1 FROM entries WHERE kind='tool_started'"
            )
            await until(lambda: bool(server.requests) and bool(rows(tmp_path, started)))
            code, output, _ = await finish(await limpet(tmp_path, "agent", "-m", "/stop", **there))
            assert (code, output) == (0, "Stopped.")
            assert (await finish(running))[0] == 130
            asked = len(server.requests)
        assert asked == 1
        assert rows(tmp_path, "SELECT state FROM turns") == [("cancelled",)]
        calls = rows(tmp_path, "SELECT count(*) FROM entries WHERE kind = 'tool_result'")
        assert calls == [(0 if doing == "asking" else 1,)]

    asyncio.run(main())


def test_a_turn_that_kills_its_process_three_times_is_given_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeAnthropic(acting) as server:
            assert (await child(tmp_path, server.base_url, 6, "m1", "act"))[0] == -9
            assert (await child(tmp_path, server.base_url, 4))[0] == -9
            assert (await child(tmp_path, server.base_url, 4))[0] == -9
            assert (await child(tmp_path, server.base_url, 0))[0] == 0
            assert rows(tmp_path, "SELECT state FROM turns") == [("failed",)]
            assert "three times" in lines(tmp_path / "shown.txt")[0]
            assert rows(tmp_path, "SELECT state FROM inbox") == [("done",)]
            assert (await child(tmp_path, server.base_url, 0, "m2", "/retry"))[0] == 0
            assert lines(tmp_path / "shown.txt")[-1] == "done"

    asyncio.run(main())
