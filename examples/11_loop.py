"""The loop on its own: a scripted model, one tool made of a function, a session in memory. No key and no disk."""

from __future__ import annotations

import asyncio
import tempfile
from typing import Annotated

from limpet.agent.execute import Execution, PathLocks
from limpet.agent.limits import Budget, Limits
from limpet.agent.loop import Loop, run
from limpet.agent.queue import Control
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.testing.memory import MemorySession
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.testing.trace import Trace
from limpet.toolkit.schema import tool
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, ToolContext, Verdict
from limpet.types.tool import ToolResult, text_result


@tool(effect="pure")
async def tide(context: ToolContext, place: Annotated[str, "name of a harbour"]) -> ToolResult:
    """When the next high tide is."""
    return text_result(f"High tide at {place}: 17:42")


class AllowAll:
    """A policy that never asks."""

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return Verdict("allow")


async def main() -> None:
    model = ScriptedModel([Answer(calls=(call("tide", {"place": "Roscoff"}),)), "Be there before 17:42."])
    session = MemorySession(tools=[tide.spec])
    session.say("When should I be at the harbour of Roscoff?")
    trace, clock = Trace(), FakeClock()
    with tempfile.TemporaryDirectory() as workspace:
        execution = Execution(
            [tide],
            policy=AllowAll(),
            context=tool_context(workspace),
            journal=session,
            locks=PathLocks(),
            clock=clock,
            emit=trace.emit,
        )
        await run(
            Loop(
                view=session,
                model=model,
                execution=execution,
                budget=Budget(Limits(), clock),
                control=Control(),
                journal=session,
                emit=trace.emit,
            )
        )
    print(trace.text)
    print("log:", " → ".join(session.kinds()))


asyncio.run(main())
