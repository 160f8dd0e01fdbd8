"""One server: started when needed, ended with all that belongs to it, its failures told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import structs

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.errors import ToolError
from limpet.mcp.kept import Records
from limpet.mcp.sdk import Answer
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock
from limpet.testing.mcp import FakeServer

T = TypeVar("T")


def spec_for(fake: FakeServer, **other: object) -> ServerSpec:
    return structs.replace(ServerSpec(name="fake", command=fake.command, args=fake.args), **other)


def served(spec: ServerSpec, folder: Path, use: Callable[[Server, FakeClock], Awaitable[T]]) -> T:
    async def run() -> T:
        clock = FakeClock()
        server = Server(spec, Records(folder), clock=clock)
        try:
            return await use(server, clock)
        finally:
            await server.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(run())


async def call(server: Server, tool: str, told: list[str] | None = None, **arguments: object) -> Answer:
    return await server.call(tool, arguments, progress=(told if told is not None else []).append)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_first_call_starts_it_and_closing_ends_it(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["echo"])

    async def use(server: Server, clock: FakeClock) -> Answer:
        assert fake.pids == []
        return await call(server, "echo", a="你好")

    answer = served(spec_for(fake), tmp_path, use)
    assert answer.content[0].text == '{"a": "\\u4f60\\u597d"}'
    assert len(fake.pids) == 1
    assert not alive(fake.pids[0])


def test_one_that_does_not_end_when_told_is_killed_with_what_it_started(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["pid"], deaf=True)
    served(spec_for(fake), tmp_path, lambda server, clock: server.learn())
    assert not alive(fake.pids[0])


def test_its_tools_are_known_without_a_start_afterwards(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["echo", "pid"])
    served(spec_for(fake), tmp_path, lambda server, clock: server.learn())
    again = Server(spec_for(fake, tools=("pid",)), Records(tmp_path), clock=FakeClock())
    assert [tool.name for tool in again.tools] == ["pid"]
    assert Server(spec_for(fake, cwd="/"), Records(tmp_path), clock=FakeClock()).tools == ()


def test_calls_at_once_share_one_start(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["pid"])

    async def use(server: Server, clock: FakeClock) -> list[Answer]:
        return await asyncio.gather(*(call(server, "pid") for _ in range(5)))

    assert len({answer.content[0].text for answer in served(spec_for(fake), tmp_path, use)}) == 1
    assert len(fake.pids) == 1


def test_one_that_dies_in_a_call_is_an_error_and_the_next_call_works(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["die", "echo"])

    async def use(server: Server, clock: FakeClock) -> None:
        with pytest.raises(ToolError, match="fake ended in the middle of die"):
            await call(server, "die")
        await call(server, "echo")

    served(spec_for(fake), tmp_path, use)
    assert len(fake.pids) == 2


def test_one_that_cannot_start_is_tried_five_times_in_a_minute_and_says_why(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", exit=1, say="no licence\n")

    async def use(server: Server, clock: FakeClock) -> None:
        for _ in range(60):
            with pytest.raises(ToolError, match=r"fake .*no licence"):
                await call(server, "echo")
            clock.advance(1)

    served(spec_for(fake), tmp_path, use)
    assert 2 <= len(fake.pids) <= 5


def test_one_that_never_answers_ends_with_its_deadline(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", hang=True)

    async def use(server: Server, clock: FakeClock) -> None:
        with pytest.raises(ToolError, match=r"fake .*in time"):
            await server.learn()

    served(spec_for(fake, start=0.2), tmp_path, use)
    assert not any(map(alive, fake.pids))  # where it came that far


def test_a_call_that_takes_too_long_is_taken_back(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["hang", "echo"])

    async def use(server: Server, clock: FakeClock) -> None:
        await server.learn()
        with pytest.raises(ToolError, match="did not answer hang"):
            await call(server, "hang")
        await call(server, "echo")

    served(spec_for(fake, timeout=1.0), tmp_path, use)
    assert fake.cancelled
    assert len(fake.pids) == 1


def test_a_cancelled_call_is_taken_back_and_the_server_stays(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["hang", "echo"])

    async def use(server: Server, clock: FakeClock) -> None:
        await server.learn()
        task = asyncio.create_task(call(server, "hang"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await call(server, "echo")

    served(spec_for(fake), tmp_path, use)
    assert fake.cancelled
    assert len(fake.pids) == 1


def test_it_gets_only_the_variables_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "s3cret")
    fake = FakeServer(tmp_path / "s", ["env"])
    answer = served(spec_for(fake, env={"NAMED": "1"}), tmp_path, lambda server, clock: call(server, "env"))
    names = set(answer.content[0].text.split())
    assert "NAMED" in names
    assert names <= {"NAMED", "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LC_CTYPE"}


def test_rubbish_on_its_output_is_passed_over(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["echo"], say="Listening…\n{]\n\x00\n")
    assert served(spec_for(fake), tmp_path, lambda server, clock: call(server, "echo")).content[0].text == "{}"


def test_tools_that_cannot_be_used_are_left_out_alone(tmp_path: Path) -> None:
    odd: list[object] = ["good", "good", 3, {"name": ""}, {"name": "text", "inputSchema": {"type": "string"}}]
    odd += [{"name": "list", "inputSchema": []}, {"name": "none"}, {"name": "titled", "title": 7, "annotations": "x"}]
    fake = FakeServer(tmp_path / "s", odd)

    async def use(server: Server, clock: FakeClock) -> None:
        await server.learn()
        assert [tool.name for tool in server.tools] == ["good", "none", "titled"]
        assert len(server.record.dropped) == 5

    served(spec_for(fake), tmp_path, use)


def test_a_list_that_changes_is_taken_over(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["change"])

    async def use(server: Server, clock: FakeClock) -> None:
        await call(server, "change")
        async with asyncio.timeout(5):
            while len(server.tools) == 1:
                await asyncio.sleep(0.01)
        assert [tool.name for tool in server.tools] == ["change", "later"]

    served(spec_for(fake), tmp_path, use)


def test_progress_is_told(tmp_path: Path) -> None:
    fake, told = FakeServer(tmp_path / "s", ["progress"]), list[str]()
    served(spec_for(fake), tmp_path, lambda server, clock: call(server, "progress", told))
    assert told == ["1 of 2: half"]


def test_a_large_answer_comes_whole(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["big"])
    answer = served(spec_for(fake), tmp_path, lambda server, clock: call(server, "big", size=3_000_000))
    assert len(answer.content[0].text) == 3_000_000


def test_a_fault_of_the_configuration_starts_nothing(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "s", ["echo"])

    async def use(server: Server, clock: FakeClock) -> None:
        with pytest.raises(ToolError, match="fake cannot be started: env:X is not set"):
            await call(server, "echo")

    served(spec_for(fake, fault="env:X is not set"), tmp_path, use)
    assert fake.pids == []
