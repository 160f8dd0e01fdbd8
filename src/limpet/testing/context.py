"""`tool_context`: what a tool may use while it runs, made for a test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from limpet.testing.blobs import FolderBlobs
from limpet.types.approval import Ruling, Wanted
from limpet.types.ports import Tool, ToolContext
from limpet.types.tool import FileIntent, ToolResult


class Recorded:
    """What a tool told its context: `intents` in order, `progress` lines, `asked` plans."""

    def __init__(self, *, approve: bool = False, secrets: Mapping[str, str] | None = None) -> None:
        self.intents: list[FileIntent] = []
        self.progress: list[str] = []
        self.asked: list[str] = []
        self._approve = approve
        self._secrets = dict(secrets or {})

    async def starting(self, intent: FileIntent | None) -> None:
        if intent is not None:
            self.intents.append(intent)

    async def ask(self, wanted: Wanted) -> Ruling:
        self.asked.append(wanted.plan)
        return Ruling(self._approve)

    def redact(self, text: str) -> str:
        for name, value in self._secrets.items():
            text = text.replace(value, f"[secret:{name}]")
        return text


def tool_context(
    workspace: str | Path,
    *,
    key: str = "a1.0",
    result_limit: int = 32_000,
    seen: Mapping[str, str] | None = None,
    recorded: Recorded | None = None,
    blobs: str | Path | None = None,
) -> ToolContext:
    """A context on `workspace`; blobs go to `blobs` or, without it, to a folder `blobs` beside the workspace."""
    recorded = recorded or Recorded()
    return ToolContext(
        key=key,
        session="s1",
        workspace=str(workspace),
        result_limit=result_limit,
        blobs=FolderBlobs(blobs or Path(workspace).parent / "blobs"),
        redactor=recorded,
        approvals=recorded,
        starting=recorded.starting,
        progress=recorded.progress.append,
        seen=dict(seen or {}),
    )


def call(tool: Tool, context: ToolContext, /, **arguments: object) -> ToolResult:
    """Bind and run a tool as a model would call it, outside any event loop."""
    return asyncio.run(tool.bind(json.dumps(arguments), workspace=context.workspace).run(context))
