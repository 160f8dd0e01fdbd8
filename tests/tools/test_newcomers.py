"""What a command makes that steers the agent is put away, by whatever neighbour it was made."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.sandbox.run import Sandbox
from limpet.testing.context import tool_context
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.processes import Processes

REPORT = Sandbox().report
pytestmark = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")


def execute(folder: Path, *commands: str) -> list[str]:
    """The results of commands that run at the same time."""

    async def main() -> list[str]:
        async with Sandbox() as sandbox:
            processes = Processes(sandbox)
            tool = make_exec(sandbox, ExecSettings(), processes=processes)
            calls = [tool.bind(json.dumps({"command": command}), workspace=str(folder)) for command in commands]
            results = await asyncio.gather(*(one.run(tool_context(folder)) for one in calls))
            await processes.close()
        return [result.text for result in results]

    return asyncio.run(main())


def test_a_file_that_was_not_there_goes_to_the_trash(tmp_path: Path) -> None:
    (text,) = execute(tmp_path, "echo obey > MEMORY.md; mkdir skills; echo fine > notes.md")
    assert "MEMORY.md, skills steers" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == [".limpet", "notes.md"]
    assert [path.read_text() for path in tmp_path.rglob("MEMORY.md")] == ["obey\n"]


def test_one_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("mine")
    execute(tmp_path, "echo obey >> MEMORY.md; true")
    assert (tmp_path / "MEMORY.md").read_text() == "mine"


def test_commands_do_not_cover_for_each_other(tmp_path: Path) -> None:
    execute(tmp_path, "echo a > memory.md; sleep 0.2", "sleep 0.1; echo b > memory.md; sleep 0.2; echo c > memory.md")
    assert not (tmp_path / "memory.md").exists()
