"""A tool and a hook, as a plug-in offers them."""

from __future__ import annotations

from typing import Annotated

from limpet import ToolContext, ToolResult, ToolWanted, hook, text_result, tool


@tool(effect="pure", brief="Greet somebody.")
async def hello(context: ToolContext, name: Annotated[str, "whom to greet"] = "world") -> ToolResult:
    """Greet somebody by name."""
    return text_result(f"Hello, {name}!")


@hook("before_tool")
async def no_goodbye(event: ToolWanted) -> str | None:
    """Refuse any call that says goodbye."""
    return "nobody leaves" if "goodbye" in event.arguments.lower() else None
