"""A real terminal that is killed while it asks: nothing has run, and the answer can be given from anywhere later."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from pathlib import Path

import pytest

from limpet.testing.fakes.openai import FakeOpenAI
from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import GUARD, at, environment, limpet
from tests.crash.processes import rows, until

WAITING = "SELECT id FROM approvals WHERE holds = 1"
COMMAND = Call("exec", json.dumps({"command": "echo ran >> ran.txt"}))
SCRIPT = [Reply(calls=(COMMAND,)), Reply(text=("all done",))]


async def at_a_terminal(home: Path, server: FakeOpenAI, typed: bytes) -> str:
    """Have the program ask its question on a terminal; type something there, or kill it. Gives what was shown."""
    master, slave = pty.openpty()
    shown: list[bytes] = []
    loop = asyncio.get_running_loop()
    loop.add_reader(master, lambda: shown.append(os.read(master, 4096)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "limpet", "agent", "-m", "go"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(home, **at(server), TERM="xterm"),
    )
    try:
        await until(lambda: (home / "limpet.db").exists() and b"Allow it?" in b"".join(shown))
        await until(lambda: bool(rows(home, WAITING)))
        if typed:
            os.write(master, typed)
        else:
            process.kill()
        await asyncio.wait_for(process.wait(), GUARD)
    finally:
        loop.remove_reader(master)
        os.close(master)
        os.close(slave)
    return b"".join(shown).decode("utf-8", "replace")


def ran(home: Path) -> str:
    path = home / "workspace" / "ran.txt"
    return path.read_text() if path.exists() else ""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text('[tools.sandbox]\nmode = "ask"\n')
    return tmp_path


def test_killed_while_it_asks_and_approved_from_a_shell(home: Path) -> None:
    async def main() -> None:
        async with FakeOpenAI(SCRIPT) as server:
            shown = await at_a_terminal(home, server, b"")
            assert 'command="echo ran >> ran.txt"' in shown
            assert rows(home, "SELECT state FROM turns") == [("waiting",)]
            assert ran(home) == ""
            name = str(rows(home, WAITING)[0][0])
            said = await limpet(home, "agent", "-m", "and then", **at(server))
            assert (said.code, name in said.err, ran(home)) == (2, True, "")
            assert (await limpet(home, "approvals", "approve", name)).code == 0
            opened = await limpet(home, "chat", stdin=b"/status\n", **at(server))
            assert "all done" in opened.out
            assert ran(home) == "ran\n"

    asyncio.run(main())


@pytest.mark.parametrize(("typed", "expected"), [(b"y\r", "ran\n"), (b"n\r", ""), (b"\x03", "")])
def test_answered_at_the_question(home: Path, typed: bytes, expected: str) -> None:
    async def main() -> None:
        async with FakeOpenAI(SCRIPT) as server:
            await at_a_terminal(home, server, typed)
            assert ran(home) == expected

    asyncio.run(main())
    assert rows(home, "SELECT state FROM turns") == [("cancelled" if typed == b"\x03" else "done",)]
