"""`exec` in the background and the tool `process`."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from limpet.errors import ToolError
from limpet.sandbox.run import Sandbox
from limpet.testing.context import Recorded, tool_context
from limpet.tools import processes as limits
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.process import make_process
from limpet.tools.processes import Processes, Told
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult
from tests.sandbox.test_run import PLACES, gone


class Shell:
    """Both tools on one set of commands, for one conversation."""

    def __init__(self, folder: Path) -> None:
        self.ends: list[Told] = []
        self.sandbox = Sandbox()
        self.processes = Processes(self.sandbox, on_end=self.ends.append)
        self._exec = make_exec(self.sandbox, ExecSettings(), processes=self.processes)
        self._process = make_process(self.processes)
        self.recorded = Recorded()
        self.context = tool_context(folder, recorded=self.recorded)

    def approving(self) -> None:
        """The owner says yes from now on."""
        self.recorded = Recorded(approve=True)
        self.context = replace(self.context, approvals=self.recorded)

    async def exec(self, command: str, **arguments: object) -> ToolResult:
        return await self._run(self._exec, {"command": command, **arguments}, self.context)

    async def process(self, action: str, id: str = "", *, context: ToolContext | None = None, **more: object):
        arguments = {"action": action, **({"id": id} if id else {}), **more}
        return await self._run(self._process, arguments, context or self.context)

    async def until(self, id: str, mark: str, **more: object) -> str:
        """Poll until `mark` has come."""
        seen = ""
        while mark not in seen:
            seen += (await self.process("poll", id, wait=5, **more)).text
        return seen

    async def _run(self, tool, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        return await tool.bind(json.dumps(arguments), workspace=context.workspace).run(context)


def play(folder: Path, scene: Callable[[Shell], Awaitable[None]]) -> None:
    async def go() -> None:
        shell = Shell(folder)
        try:
            await scene(shell)
        finally:
            await shell.processes.close()
            await shell.sandbox.close()

    asyncio.run(asyncio.wait_for(go(), 60))


@pytest.mark.parametrize("place", PLACES)
def test_a_long_command_goes_on_in_the_background_and_is_polled(tmp_path, place):
    async def scene(shell: Shell) -> None:
        first = await shell.exec("echo one; read x < go; echo two; exit 3", wait=0, place=place)
        assert first.text.endswith("[Still running in the background as p1, at most 120 s. "
                                   "See the tool process; its end is told.]")  # fmt: skip
        assert not first.is_error
        assert "one\n" in first.text or "one\n[p1: running for" in await shell.until("p1", "one")
        await asyncio.to_thread(lambda: (tmp_path / "go").write_text("now\n"))
        last = await shell.until("p1", "exit code 3")
        assert "two\n[p1: ended with exit code 3 after" in last
        assert "one" not in last

    os.mkfifo(tmp_path / "go")
    play(tmp_path, scene)


def test_a_command_that_ends_in_time_is_not_in_the_background(tmp_path):
    async def scene(shell: Shell) -> None:
        assert (await shell.exec("echo hello", wait=20)).text == "hello\n[exit code 0]"
        assert (await shell.process("list")).text == "No command of this conversation is in the background."

    play(tmp_path, scene)


@pytest.mark.parametrize("place", PLACES)
def test_input_through_a_pipe_until_its_end(tmp_path, place):
    async def scene(shell: Shell) -> None:
        shell.approving()
        await shell.exec("while read line; do echo got $line; done; echo over", wait=0, input=True, place=place)
        first = await shell.process("write", "p1", text="apple")
        assert first.text.startswith("got apple\n")
        last = await shell.process("write", "p1", text="pear", keys=["enter", "eof"])
        assert last.text.startswith("got pear\nover\n[p1: ended with exit code 0")
        with pytest.raises(ToolError, match="reads no more input"):
            await shell.process("write", "p1", text="more")

    play(tmp_path, scene)


@pytest.mark.parametrize("place", PLACES)
def test_a_terminal_is_a_real_one_of_its_own(tmp_path, place):
    async def scene(shell: Shell) -> None:
        shell.approving()
        command = "tty; stty size; echo yes > /dev/tty; read x; echo said $x; cat; echo unreached"
        await shell.exec(command, wait=0, pty=True, place=place)
        begun = await shell.until("p1", "yes")
        assert "/dev/pts/" in begun
        assert "40 120" in begun
        assert "said word" in (await shell.process("write", "p1", text="word")).text
        ended = await shell.process("write", "p1", keys=["ctrl-c"])
        assert "exit code 130" in ended.text
        assert "unreached" not in ended.text

    play(tmp_path, scene)


def test_a_command_without_input_cannot_be_written_to(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("sleep 60", wait=0)
        with pytest.raises(ToolError, match="p1 takes no input"):
            await shell.process("write", "p1", text="x")

    play(tmp_path, scene)


@pytest.mark.parametrize("place", PLACES)
def test_kill_ends_the_whole_tree(tmp_path, place):
    mark = f"41{os.getpid()}1"

    async def scene(shell: Shell) -> None:
        await shell.exec(f"setsid sleep {mark} & sleep {mark}", wait=0, place=place)
        killed = await shell.process("kill", "p1")
        assert killed.text.startswith("(no new output)\n[p1: was killed after")
        assert gone(f"sleep\0{mark}")

    play(tmp_path, scene)


@pytest.mark.parametrize("place", PLACES)
def test_children_that_outlive_their_command_are_reached_by_the_same_tool(tmp_path, place):
    mark = f"42{os.getpid()}2"

    async def scene(shell: Shell) -> None:
        done = await shell.exec(f"(read x < go; echo later; sleep {mark}) & echo done", place=place)
        assert done.text.startswith("done\n[exit code 0]\n[Still running in the background: ")
        assert "p1 for the tool process" in done.text
        (tmp_path / "go").write_text("now\n")
        assert "later" in await shell.until("p1", "later")
        assert (
            f"sleep {mark}" in (await shell.process("list")).text or "still run" in (await shell.process("list")).text
        )
        await shell.process("kill", "p1")
        assert gone(f"sleep\0{mark}")

    os.mkfifo(tmp_path / "go")
    play(tmp_path, scene)


def test_a_conversation_sees_only_its_own(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("sleep 60", wait=0)
        other = replace(shell.context, session="s2")
        assert (await shell.process("list", context=other)).text.startswith("No command")
        for action in ("poll", "log", "write", "kill"):
            with pytest.raises(ToolError, match="no background command 'p1' in this conversation"):
                await shell.process(action, "p1", context=other)

    play(tmp_path, scene)


def test_log_gives_lines_from_anywhere(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("seq 500; sleep 60", wait=0)
        await shell.until("p1", "500")
        last = (await shell.process("log", "p1", limit=2)).text
        assert last.endswith("lines 499-500 of 500]\n499\n500")
        assert (await shell.process("log", "p1", offset=7, limit=2)).text.endswith("]\n7\n8")

    play(tmp_path, scene)


def test_a_character_cut_in_two_is_told_once_and_whole(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("printf 'caf\\303'; read x < go; printf '\\251 ok\\n'; sleep 60", wait=0)
        first = await shell.until("p1", "caf")
        assert "caf\n" in first
        (tmp_path / "go").write_text("now\n")
        assert "é ok" in await shell.until("p1", "ok")

    os.mkfifo(tmp_path / "go")
    play(tmp_path, scene)


def test_the_timeout_holds_in_the_background(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("echo begun; sleep 60", wait=0, timeout=1)
        assert "timed out after 1 s" in await shell.until("p1", "timed out")

    play(tmp_path, scene)


def test_the_end_is_heard_of(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("exit 4", wait=0)
        await shell.until("p1", "exit code 4")
        assert [(one.key, one.name) for one in shell.ends] == [("s1", "p1")]
        assert shell.ends[0].outcome.startswith("ended with exit code 4")

    play(tmp_path, scene)


def test_stopping_a_turn_ends_its_commands_and_no_others(tmp_path):
    async def scene(shell: Shell) -> None:
        for turn in ("t1", "t2"):
            shell.context = replace(shell.context, turn=turn)
            await shell.exec("sleep 60", wait=0)
        await shell.processes.stop("t2")
        listed = (await shell.process("list")).text.splitlines()
        assert "running for" in listed[0]
        assert "p2: was killed when you were stopped" in listed[1]

    play(tmp_path, scene)


def test_there_is_a_limit_on_how_many_run(tmp_path):
    async def scene(shell: Shell) -> None:
        for _ in range(limits.LIVE):
            await shell.exec("sleep 60", wait=0)
        with pytest.raises(ToolError, match="no more commands can run in the background"):
            await shell.exec("sleep 60", wait=0)
        assert (await shell.exec("echo still", wait=1)).text == "still\n[exit code 0]"

    play(tmp_path, scene)


def test_where_nothing_may_go_on_a_call_waits_for_the_end(tmp_path):
    async def scene(shell: Shell) -> None:
        shell.context = replace(shell.context, background=False)
        result = await shell.exec("sleep 1.2; echo end", wait=1)
        assert result.text == "end\n[exit code 0]"

    play(tmp_path, scene)


def test_what_goes_to_a_command_on_the_host_is_asked_for(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("sh", wait=0, input=True, place="host")
        with pytest.raises(ToolError, match="Not approved by the owner: the command runs outside"):
            await shell.process("write", "p1", text="touch made")
        assert shell.recorded.asked == ['process write to="sh" text="touch made" keys=["enter"]']
        assert not (tmp_path / "made").exists()

    play(tmp_path, scene)


def test_cancelling_the_call_kills_what_is_in_the_foreground(tmp_path):
    mark = f"43{os.getpid()}3"

    async def scene(shell: Shell) -> None:
        calling = asyncio.create_task(shell.exec(f"touch begun; sleep {mark}", wait=60))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert gone(f"sleep\0{mark}")

    play(tmp_path, scene)


def test_much_output_stays_bounded_and_says_what_is_missing(tmp_path):
    async def scene(shell: Shell) -> None:
        await shell.exec("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo last; sleep 60", wait=0)
        text = await shell.until("p1", "last")
        assert "left out here" in text or "not kept" in text
        one = shell.processes.of("s1")[0]
        assert len(one.whole()) < 9_000_000

    play(tmp_path, scene)
