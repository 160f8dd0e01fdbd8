"""SIGKILL for an agent with commands on the host, and for what would have ended them: the next start finds them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from limpet.store.processes import StoredProcesses, tell
from limpet.testing.scripted import ScriptedModel
from limpet.tools.processes import Processes
from tests.assistant.room import KEY, home
from tests.crash.processes import ROOT, rows
from tests.sandbox.test_run import gone, processes_with, soon

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are counted in /proc")


def killed(folder: Path, mark: str, *, with_inits: bool) -> None:
    """Start an agent with commands, and kill it."""
    command = [sys.executable, "-m", "tests.crash.commands_child", str(folder), mark]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        inits = [int(pid) for pid in child.stdout.readline().split()]
        assert len(inits) == 2
        assert soon(lambda: len(processes_with(f"sleep\0{mark}")) == 4)
        for pid in inits if with_inits else ():
            os.kill(pid, signal.SIGSTOP)  # so that neither sees the other die
        child.kill()
    for pid in inits if with_inits else ():
        os.kill(pid, signal.SIGKILL)


async def next_start(folder: Path) -> tuple[str, str]:
    """What the next process does, and what its conversation then hears, twice."""
    async with home(folder, ScriptedModel([])) as (services, _), Sandbox(enabled=False) as sandbox:
        await Processes(sandbox, StoredProcesses(services.store, services.owner, services.clock)).end_lost()
        first = await services.store.write(lambda connection: tell(connection, KEY, now=1))
        return first, await services.store.write(lambda connection: tell(connection, KEY, now=1))


@pytest.mark.parametrize("with_inits", [False, True])
def test_commands_of_a_killed_agent_are_ended_and_told_once(tmp_path: Path, with_inits: bool) -> None:
    mark = f"71{os.getpid()}{int(with_inits)}"
    killed(tmp_path, mark, with_inits=with_inits)
    assert len(processes_with(f"sleep\0{mark}")) == 4 if with_inits else gone(f"sleep\0{mark}")
    first, second = asyncio.run(next_start(tmp_path))
    assert processes_with(f"sleep\0{mark}") == [] or gone(f"sleep\0{mark}")
    assert first.startswith("[The background command p1 (")
    assert first.endswith("ended with the agent, which was killed: outcome unknown.]")
    assert second == ""
    assert rows(tmp_path, "SELECT count(*) FROM processes") == [(1,)]


def test_commands_of_a_living_agent_are_left_alone(tmp_path: Path) -> None:
    mark = f"72{os.getpid()}2"
    command = [sys.executable, "-m", "tests.crash.commands_child", str(tmp_path), mark]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert asyncio.run(next_start(tmp_path)) == ("", "")
        assert soon(lambda: len(processes_with(f"sleep\0{mark}")) == 4)
        child.kill()
    assert gone(f"sleep\0{mark}")
