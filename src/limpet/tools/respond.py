"""`respond`: how a heartbeat is answered. Its first call ends the run, and says whether the owner is told something."""

from __future__ import annotations

from typing import Annotated

from msgspec import structs

from limpet.errors import ToolError
from limpet.toolkit.schema import tool
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result

RESPOND = "respond"


@tool(effect="pure", brief="End this heartbeat.")
async def respond(
    context: ToolContext,
    notify: Annotated[bool, "whether there is something worth telling your owner now"],
    text: Annotated[str, "what is told, word for word"] = "",
) -> ToolResult:
    """Your answer to this heartbeat; the run ends with it."""
    if notify and not text.strip():
        raise ToolError("with notify=true, say in `text` what is to be told")
    return structs.replace(text_result("noted"), ends_turn=True)
