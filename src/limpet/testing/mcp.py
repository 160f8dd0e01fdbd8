"""MCP servers for tests: real programs that list what they are told and do what a tool's name says."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).parent / "fakes" / "mcp_stdio.py"


class FakeServer:
    """A server's program, in the folder `folder`. `before` is what else its plan holds:
    `prompts`, `resources`, and what it does first (`exit`, `say`, `hang`, `deaf`)."""

    def __init__(self, folder: Path, tools: Sequence[object] = (), **before: object) -> None:
        self._plan = folder / "plan.json"
        folder.mkdir(parents=True, exist_ok=True)
        listed = [
            {"name": tool, "inputSchema": {"type": "object"}} if isinstance(tool, str) else tool for tool in tools
        ]
        self._plan.write_text(json.dumps({"tools": listed, **before}))
        self.command = sys.executable
        self.args = ("-S", str(PROGRAM), str(self._plan))

    @property
    def pids(self) -> list[int]:
        """The process of each start."""
        path = self._plan.with_suffix(".starts")
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    @property
    def cancelled(self) -> bool:
        """Whether a call was taken back."""
        return self._plan.with_suffix(".cancelled").exists()
