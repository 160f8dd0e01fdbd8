"""`session_search` and `session_send`: other conversations of the agent."""

from __future__ import annotations

from typing import Annotated

from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.content import Text
from limpet.types.envelope import Trust
from limpet.types.ports import Sessions, ToolContext
from limpet.types.tool import ToolResult, text_result


def session_tools(sessions: Sessions) -> tuple[FunctionTool, ...]:
    """The tools over what knows the other conversations."""

    @tool(effect="pure", brief="Search past conversations.", rare="sought")
    async def session_search(
        context: ToolContext,
        words: Annotated[str, "what to look for; empty: list the newest conversations"] = "",
        anchor: Annotated[str, "read on around this place of an earlier result, instead of words"] = "",
    ) -> ToolResult:
        """Search what was said in all your conversations, this one's older part included."""
        if anchor:
            return _result(*await sessions.around(anchor, session=context.session, limit=context.result_limit))
        return _result(*await sessions.search(words, session=context.session, limit=context.result_limit))

    @tool(effect="row", brief="Say something in another conversation.", sends=True, rare="sought")
    async def session_send(
        context: ToolContext,
        to: Annotated[str, "its key or name"],
        text: Annotated[str, "the message"],
    ) -> ToolResult:
        """Say something in another of your conversations. It is read when that goes on; no answer comes back here."""
        post = await sessions.post(to, text, session=context.session, call=context.key)
        context.post(post)
        return text_result(f"left for {post.key}")

    return (session_search, session_send)


def _result(text: str, trust: Trust) -> ToolResult:
    return ToolResult((Text(text),), trust="external" if trust == "external" else "tool")
