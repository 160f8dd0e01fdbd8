"""Folders beside the workspace that `read_file` may read, such as those of skills. They are never written."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps

import msgspec

from limpet.toolkit.schema import FunctionTool
from limpet.types.content import Text
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult

Folders = Callable[[], tuple[str, ...]]
_FILE, _BASE = "SKILL.md", "{baseDir}"


def none_beside() -> tuple[str, ...]:
    """Nothing besides the workspace."""
    return ()


def reading_beside(tool: FunctionTool, folders: Folders) -> FunctionTool:
    """`tool`, which has a parameter `path`, also for files below one of `folders`.

    In a SKILL.md, wherever it lies, `{baseDir}` stands for its folder.
    """

    def wrap(function: Callable[..., Awaitable[ToolResult]]) -> Callable[..., Awaitable[ToolResult]]:
        @wraps(function)
        async def read(context: ToolContext, path: str, **rest: object) -> ToolResult:
            place = next((one for one in folders() if path.startswith(one.rstrip("/") + "/")), "")
            found = await function(replace(context, workspace=place) if place else context, path=path, **rest)
            return _with_base(found) if os.path.basename(path) == _FILE else found

        return read

    return tool.around(wrap)


def _with_base(result: ToolResult) -> ToolResult:
    base = os.path.dirname(result.details.path)
    content = tuple(
        Text(block.text.replace(_BASE, base)) if isinstance(block, Text) and base else block for block in result.content
    )
    return msgspec.structs.replace(result, content=content)
