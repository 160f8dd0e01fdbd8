"""Limpet: a personal AI agent that lives on your own machine and never loses anything.

What programs with an agent in them and authors of plug-ins need is imported from here; it is loaded when it is asked
for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limpet.errors import LimpetError as LimpetError
    from limpet.errors import ToolError as ToolError
    from limpet.sdk import Agent as Agent
    from limpet.sdk import Reply as Reply
    from limpet.sdk import Session as Session
    from limpet.sdk import ask as ask
    from limpet.toolkit.author import tool as tool
    from limpet.toolkit.hooks import hook as hook
    from limpet.types.hook import ToolFinished as ToolFinished
    from limpet.types.hook import ToolWanted as ToolWanted
    from limpet.types.ports import ToolContext as ToolContext
    from limpet.types.tool import ToolResult as ToolResult
    from limpet.types.tool import text_result as text_result

__version__ = "0.1.0"

_FOR_AUTHORS = {
    "Agent": "limpet.sdk",
    "LimpetError": "limpet.errors",
    "Reply": "limpet.sdk",
    "Session": "limpet.sdk",
    "ToolContext": "limpet.types.ports",
    "ToolError": "limpet.errors",
    "ToolFinished": "limpet.types.hook",
    "ToolResult": "limpet.types.tool",
    "ToolWanted": "limpet.types.hook",
    "ask": "limpet.sdk",
    "hook": "limpet.toolkit.hooks",
    "text_result": "limpet.types.tool",
    "tool": "limpet.toolkit.author",
}


def __getattr__(name: str) -> object:
    if name not in _FOR_AUTHORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # only for plug-ins

    return getattr(importlib.import_module(_FOR_AUTHORS[name]), name)
