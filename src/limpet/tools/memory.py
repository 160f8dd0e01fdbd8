"""`memory_write`: what should be remembered."""

from __future__ import annotations

from typing import Annotated, Literal

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.types.ports import ToolContext
from limpet.types.tool import Details, ToolResult, text_result


@tool(effect="idempotent", exclusive=True, brief="Remember something for later conversations.")
async def memory_write(
    context: ToolContext,
    text: Annotated[str, "one fact, in a sentence that stands by itself"],
    kind: Annotated[Literal["lasting", "today"], "lasting: true for long; today: what happened"] = "lasting",
) -> ToolResult:
    """Remember something beyond this conversation: at once when the user asks you to, and what will matter later.
    Never secrets."""
    if context.memory is None:
        raise ToolError("there is no memory here")
    told = await context.memory.write(text, lasting=kind == "lasting", call=f"{context.session}:{context.key}")
    return text_result(told, details=Details(summary=told.split("\n")[0]))
