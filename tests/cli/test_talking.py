"""Several doors to one conversation, and Ctrl-C, with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import termios
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply, Seen
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


class Typing:
    """A person at a terminal."""

    def __init__(self, terminal: int, process: int) -> None:
        self.terminal = terminal
        self.process = process
        self.found = b""

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    async def prompted(self) -> None:
        """Wait until the terminal hands Ctrl-C over as a key, which is after the prompt is drawn."""
        async with asyncio.timeout(GUARD):
            while termios.tcgetattr(self.terminal)[3] & termios.ICANON:
                await asyncio.sleep(0.02)

    async def until(self, text: str) -> None:
        """Wait until the screen has shown `text` since the last time."""
        async with asyncio.timeout(GUARD):
            while text.encode() not in self.found:
                with contextlib.suppress(BlockingIOError):
                    self.found += os.read(self.terminal, 4096)
                await asyncio.sleep(0.02)
        self.found = self.found.partition(text.encode())[2]


@contextlib.asynccontextmanager
async def typing(home: Path, server: FakeOpenAI, *arguments: str) -> AsyncGenerator[Typing]:
    """The program on a terminal of its own, which must leave with 0."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "limpet", *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env=environment(home, **at(server), TERM="dumb"),
    )
    os.close(theirs)
    try:
        yield Typing(ours, process.pid)
        assert await asyncio.wait_for(process.wait(), GUARD) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


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
            os.kill(chat.process.pid, signal.SIGINT)
            await chat.say("quick")
            await chat.until("quick answer")
            await chat.say("exit")
            code, out, err = await chat.end()
        assert (code, out.strip()) == (130, "")
        assert "Stopped." in err
        assert "Traceback" not in err

    asyncio.run(main())


def test_ctrl_c_on_a_terminal(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, typing(tmp_path, server, "chat") as person:
            await person.until("> ")
            for _ in range(2):
                person.type("slow\r")
                await person.until("slow answer")
                person.type("\x03")
                await person.until("Stopped.")
                await person.until("> ")
            person.type("quick\r")
            await person.until("quick answer")
            await person.until("> ")
            person.type("exit\r")

    asyncio.run(main())


def test_ctrl_c_twice_at_the_prompt_leaves(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, typing(tmp_path, server, "chat") as person:
            await person.until("> ")
            await person.prompted()
            person.type("\x03")
            await person.until("once more")
            await person.until("> ")
            await person.prompted()
            person.type("\x03")

    asyncio.run(main())


def test_a_late_ctrl_c_does_not_end_the_conversation(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(script) as server, typing(tmp_path, server, "chat") as person:
            await person.until("> ")
            for _ in range(3):
                person.type("quick\r")
                await person.until("quick answer")
                os.kill(person.process, signal.SIGINT)
                await person.until("> ")
            person.type("exit\r")

    asyncio.run(main())


def test_ctrl_c_at_a_question_is_no_and_stops_the_turn(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[tools.sandbox]\nmode = "ask"\n')

    def calling(seen: Seen) -> Reply:
        if b'"role":"tool"' in seen.raw:
            return Reply(text=("after the tool",))
        return Reply(calls=(Call("exec", '{"command": "echo ran it"}'),))

    async def main() -> None:
        async with FakeOpenAI(calling) as server, typing(tmp_path, server, "chat") as person:
            await person.until("> ")
            person.type("go\r")
            await person.until("[y/N]")
            await person.prompted()
            person.type("\x03")
            await person.until("Stopped.")
            await person.until("> ")
            person.type("\x04")
            assert len(server.requests) == 1

    asyncio.run(main())


def test_yes_lets_a_command_run_without_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[tools.sandbox]\nmode = "ask"\n')

    def calling(seen: Seen) -> Reply:
        if b'"role":"tool"' in seen.raw:
            return Reply(text=("it said hello" if b"HELLO" in seen.raw else "it was refused",))
        return Reply(calls=(Call("exec", '{"command": "echo hello | tr a-z A-Z"}'),))

    async def main() -> None:
        async with FakeOpenAI(calling) as server:
            async with typing(tmp_path, server, "agent", "-m", "go") as person:
                await person.until("echo hello")
                await person.until("[y/N]")
                person.type("y\r")
                await person.until("it said hello")
            alone = await limpet(tmp_path, "agent", "-m", "go", "--session", "alone", **at(server))
        assert alone.out == "it was refused\n"

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
                        os.kill(running.process.pid, signal.SIGINT)
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
                os.kill(waiting.process.pid, signal.SIGINT)
                code, _, err = await waiting.end()
                assert (code, err.strip()) == (
                    130,
                    "Not waiting any longer. What you said is kept and comes next in this conversation.",
                )
            os.kill(holder.process.pid, signal.SIGINT)
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
