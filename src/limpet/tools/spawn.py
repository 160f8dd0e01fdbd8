"""`spawn`: a helper that works on a task beside the conversation, and reports back by itself."""

from __future__ import annotations

from typing import Annotated

from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.ports import Spawner, ToolContext
from limpet.types.tool import ToolResult, text_result

SAID = "The helper {id} has it. Its result comes by itself, as a message here: go on, or end your turn."


def make_spawn(spawner: Spawner) -> FunctionTool:
    """The tool over what knows who may have helpers."""

    @tool(effect="row", brief="Give a task to a helper.", rare=True)
    async def spawn(
        context: ToolContext,
        task: Annotated[str, "all it needs to know: it sees nothing of this conversation"],
        focus: Annotated[str, "what matters most"] = "",
        model: Annotated[str, "provider/model"] = "",
    ) -> ToolResult:
        """Give a task to a helper (subagent) that works in the background; its result comes later as a message."""
        made = await spawner.errand(task, focus=focus, model=model, session=context.session, call=context.key)
        context.post(made)
        return text_result(SAID.format(id=made.id))

    return spawn
