"""Commands cannot write what steers the agent; file tools can."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from limpet.prompt.templates import seed_workspace
from limpet.sandbox.run import Sandbox
from limpet.testing.context import tool_context
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.protected import is_protected, present

REPORT = Sandbox().report


@pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")
@pytest.mark.parametrize(
    "command",
    [
        "echo evil >> MEMORY.md",
        "rm SOUL.md",
        "mv notes.md AGENTS.md",
        "mkdir -p skills/evil && echo x > skills/evil/SKILL.md",
        "rm -rf memory",
        "ln -sf /etc/passwd USER.md",
    ],
)
def test_a_command_cannot_write_what_steers_the_agent(tmp_path: Path, command: str) -> None:
    seed_workspace(str(tmp_path), bootstrap=False)
    (tmp_path / "notes.md").write_text("notes")
    before = {path: path.read_text() for path in tmp_path.rglob("*.md")}

    async def main() -> str:
        async with Sandbox() as sandbox:
            bound = make_exec(sandbox, ExecSettings()).bind(json.dumps({"command": command}), workspace=str(tmp_path))
            await bound.run(tool_context(tmp_path))
            free = json.dumps({"command": "echo fine > free.md && cat MEMORY.md"})
            bound = make_exec(sandbox, ExecSettings()).bind(free, workspace=str(tmp_path))
            return (await bound.run(tool_context(tmp_path))).text

    assert "exit code 0" in asyncio.run(main())
    assert (tmp_path / "free.md").read_text() == "fine\n"
    assert {path: path.read_text() for path in before} == before
    assert list((tmp_path / "skills").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        ("AGENTS.md", True),
        ("agents.MD", True),
        ("memory/2026-11-30.md", True),
        ("skills/a/SKILL.md", True),
        ("site/AGENTS.md", True),
        ("notes.md", False),
        ("memory.txt", False),
    ],
)
def test_which_files_those_are(path: str, protected: bool) -> None:
    assert is_protected(path) is protected


def test_links_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").symlink_to("/etc/passwd")
    (tmp_path / "SOUL.md").write_text("x")
    assert present(str(tmp_path)) == (str(tmp_path / "SOUL.md"),)
