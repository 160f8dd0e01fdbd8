"""Several doors to one conversation, and Ctrl-C, with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Reply, Seen
from tests.cli.program import GUARD, at, environment, limpet


def script(seen: Seen) -> Reply:
    """Says which word was said last; slow when that is `slow`."""
    newest = seen.raw.decode().rpartition('"role":"user"')[2]
    word = next((word for word in ("third", "quick", "slow") if word in newest), "other")
    return Reply(text=(f"{word} ", "answer"), stall_after=3 if word == "slow" else -1, delay=0.3)


class Running:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        await self.process.stdin.drain()

    async def until(self, text: str) -> str:
        """Everything that comes until `text` does."""
        assert self.process.stdout is not None
        found = b""
        async with asyncio.timeout(GUARD):
            while text.encode() not in found:
                more = await self.process.stdout.read(4096)
                assert more, found
                found += more
        return found.decode()

    async def end(self) -> tuple[int, str, str]:
        out, err = await asyncio.wait_for(self.process.communicate(), GUARD)
        return self.process.returncode or 0, out.decode(), err.decode()


@contextlib.asynccontextmanager
async def started(home: Path, server: FakeOpenAI, *arguments: str) -> AsyncGenerator[Running]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "limpet", *arguments),
        stdin=pipe if arguments[0] == "chat" else asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env=environment(home, **at(server)),
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def asked(server: FakeOpenAI, count: int) -> None:
    async with asyncio.timeout(GUARD):
        while len(server.requests) < count:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)


def test_each_terminal_shows_the_answers_to_what_was_said_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server:
            first = asyncio.create_task(limpet(tmp_path, "agent", "-m", "quick", **at(server)))
            await asked(server, 1)
            second = await limpet(tmp_path, "agent", "-m", "third", **at(server))
            ended = await first
        assert (second.code, second.out) == (0, "third answer\n")
        assert ended.out == "quick answer\n"

    asyncio.run(main())


def test_what_is_meant_for_a_dead_terminal_is_shown_by_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, started(tmp_path, server, "agent", "-m", "quick") as killed:
            await asked(server, 1)
            killed.process.kill()
            await killed.process.wait()
            following = await limpet(tmp_path, "agent", "-m", "third", **at(server))
        assert following.out == "quick answer\nthird answer\n"

    asyncio.run(main())


def test_ctrl_c_stops_the_turn_and_the_conversation_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, started(tmp_path, server, "chat") as chat:
            await chat.say("slow")
            await chat.until("slow ")
            chat.process.send_signal(signal.SIGINT)
            await chat.say("quick")
            await chat.until("quick answer")
            await chat.say("exit")
            code, out, err = await chat.end()
        assert (code, out.strip()) == (130, "")
        assert "Stopped." in err
        assert "Traceback" not in err

    asyncio.run(main())


@pytest.mark.parametrize("door", [("agent", "-m", "slow"), ("chat",)])
def test_ctrl_c_again_and_again_leaves_and_the_next_start_goes_on(tmp_path: Path, door: tuple[str, ...]) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server:
            async with started(tmp_path, server, *door) as running:
                if door == ("chat",):
                    await running.say("slow")
                await asked(server, 1)
                ended = asyncio.create_task(running.process.wait())
                while not ended.done():
                    with contextlib.suppress(ProcessLookupError):
                        running.process.send_signal(signal.SIGINT)
                    await asyncio.sleep(0.15)
                code, _, err = await running.end()
                assert code in (130, -signal.SIGINT)
                assert "Traceback" not in err
            following = await limpet(tmp_path, "agent", "-m", "/status", **at(server))
        assert following.code == 0
        assert "turn: idle" in following.out

    asyncio.run(main())


def test_ctrl_c_while_another_process_works_ends_the_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, started(tmp_path, server, "agent", "-m", "slow") as holder:
            await asked(server, 1)
            async with started(tmp_path, server, "agent", "-m", "quick") as waiting:
                assert waiting.process.stderr is not None
                async with asyncio.timeout(GUARD):
                    while b"waiting for it" not in await waiting.process.stderr.readline():
                        pass
                waiting.process.send_signal(signal.SIGINT)
                code, _, err = await waiting.end()
                assert (code, err.strip()) == (
                    130,
                    "Not waiting any longer. What you said is kept and comes next in this conversation.",
                )
            holder.process.send_signal(signal.SIGINT)
            assert (await holder.end())[0] == 130
            following = await limpet(tmp_path, "agent", "-m", "third", **at(server))
            assert following.out == "third answer\n", "one answer to both, shown once"
            assert all(word in server.requests[-1].raw for word in (b"quick", b"third"))

    asyncio.run(main())


def test_a_model_named_in_a_conversation_replaces_the_one_of_the_option(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server:
            lines = b"quick\n/model openai/gpt-4o\nthird\n/status\n"
            ended = await limpet(tmp_path, "chat", "--model", "openai/gpt-4.1", stdin=lines, **at(server))
            models = [str(seen.body["model"]) for seen in server.requests if seen.body is not None]
        assert models == ["gpt-4.1", "gpt-4o"]
        assert "model: openai/gpt-4o" in ended.out

    asyncio.run(main())


def test_the_exit_code_of_a_piped_conversation_is_that_of_its_worst_message(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI([Reply(status=400, body={"error": {"message": "no"}}), Reply(text=("yes",))]) as server:
            ended = await limpet(tmp_path, "chat", stdin=b"one\ntwo\n", **at(server))
        assert (ended.code, ended.out) == (3, "yes\n")

    asyncio.run(main())
