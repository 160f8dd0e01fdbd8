"""A process with two commands on the host, one in the background: `commands_child.py HOME MARK`. It waits to be killed.

Prints the pid of the init of each once both run.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

from limpet.sandbox.run import Sandbox
from limpet.store.processes import StoredProcesses
from limpet.store.sessions import open_live
from limpet.testing.context import tool_context
from limpet.testing.scripted import ScriptedModel
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.processes import Processes
from tests.assistant.room import KEY, home


async def main(folder: Path, mark: str) -> None:
    async with home(folder, ScriptedModel([])) as (services, _):
        session = await services.store.write(lambda connection: open_live(connection, KEY, agent="main", now=0))
        sandbox = Sandbox(enabled=False)
        processes = Processes(sandbox, StoredProcesses(services.store, services.owner, services.clock))
        tool = make_exec(sandbox, ExecSettings(), processes=processes)
        context = replace(tool_context(folder), session=session.id)

        async def run(wait: int) -> None:
            arguments = {"command": f"(setsid sleep {mark} &); sleep {mark}", "wait": wait}
            await tool.bind(json.dumps(arguments), workspace=str(folder)).run(context)

        await run(0)
        foreground = asyncio.create_task(run(600))
        while len(services.store.read(lambda c: c.execute("SELECT pid FROM processes").fetchall())) < 2:
            await asyncio.sleep(0.01)
        pids = services.store.read(lambda c: c.execute("SELECT pid FROM processes").fetchall())
        print(" ".join(str(pid) for (pid,) in pids), flush=True)
        await foreground


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
