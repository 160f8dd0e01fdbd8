"""The loop with everything around it in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from limpet.agent.execute import Execution, PathLocks
from limpet.agent.limits import Budget, Limits
from limpet.agent.loop import Loop
from limpet.agent.queue import Control
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.testing.memory import MemorySession
from limpet.testing.scripted import ScriptedModel, Step
from limpet.testing.trace import Trace
from limpet.types.content import Text
from limpet.types.message import ToolMessage
from limpet.types.ports import EVERYWHERE, BoundCall, Hooks, Policy, Scope, Tool, Verdict


class Allow:
    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        return Verdict("allow")


class Table:
    """Everything a test of the loop may look at."""

    def __init__(
        self,
        script: Iterable[Step],
        tools: Sequence[Tool] = (),
        *,
        folder: Path = Path("/nowhere"),
        limits: Limits | None = None,
        policy: Policy | None = None,
        forever: bool = False,
        hooks: Hooks | None = None,
    ) -> None:
        self.model = ScriptedModel(script, forever=forever)
        self.session = MemorySession(tools=[tool.spec for tool in tools])
        self.session.say("go")
        self.trace = Trace()
        self.clock = FakeClock()
        self.control = Control()
        self.execution = Execution(
            tools,
            policy=policy or Allow(),
            context=tool_context(folder),
            journal=self.session,
            locks=PathLocks(),
            clock=self.clock,
            emit=self.trace.emit,
            hooks=hooks,
        )
        self.loop = Loop(
            view=self.session,
            model=self.model,
            execution=self.execution,
            budget=Budget(limits or Limits(), self.clock),
            control=self.control,
            journal=self.session,
            emit=self.trace.emit,
        )

    def results(self) -> list[str]:
        """The texts of all tool results that the model has been sent, in order."""
        sent = [message for message in self.model.requests[-1].messages if isinstance(message, ToolMessage)]
        return ["".join(block.text for block in message.content if isinstance(block, Text)) for message in sent]
