"""`memory_search` and `memory_get`: what notes and earlier conversations say."""

from __future__ import annotations

from typing import Annotated

from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.content import Text
from limpet.types.envelope import Trust
from limpet.types.ports import MemorySearch, ToolContext
from limpet.types.tool import ToolResult

RESULTS = 6
MIN_SCORE = 0.35
LINES = 100


def recollection_tools(memory: MemorySearch) -> tuple[FunctionTool, ...]:
    """The tools that look into `memory`."""

    @tool(effect="pure", brief="Search notes and past conversations.")
    async def memory_search(
        context: ToolContext,
        query: Annotated[str, "a question or words; names and days count"],
        max_results: int = RESULTS,
        min_score: Annotated[float, "0 to 1"] = MIN_SCORE,
    ) -> ToolResult:
        """Search your notes and earlier conversations. Look here before you answer about earlier work, decisions,
        dates, people, preferences or to-dos."""
        found = await memory.search(
            query, session=context.session, most=max_results, min_score=min_score, limit=context.result_limit
        )
        return _result(*found)

    @tool(effect="pure", brief="Read lines of a memory file.")
    async def memory_get(
        context: ToolContext,
        path: Annotated[str, "as memory_search names it"],
        from_line: int = 1,
        lines: int = LINES,
    ) -> ToolResult:
        """Read lines of a memory file, around what memory_search has found."""
        found = await memory.get(
            path, session=context.session, first=from_line, lines=lines, limit=context.result_limit
        )
        return _result(*found)

    return (memory_search, memory_get)


def _result(text: str, trust: Trust) -> ToolResult:
    return ToolResult((Text(text),), trust="external" if trust == "external" else "tool")
