"""A call through `call_tool` is one of the tool it names, for policy, owner, loop guard, log and recovery."""

from __future__ import annotations

import asyncio

import pytest

from limpet.agent.loop import run
from limpet.session.project import UNKNOWN_OUTCOME
from limpet.testing.scripted import SCRIPTED, Answer, call
from limpet.toolkit.schema import tool
from limpet.tools.deferred import CallTool
from limpet.types.content import ToolCall
from limpet.types.entry import ToolResultEntry, ToolStarted
from limpet.types.message import AssistantMessage, ToolMessage
from limpet.types.ports import EVERYWHERE, BoundCall, Scope, Tool, ToolContext, Verdict
from limpet.types.tool import Effect, ToolResult, text_result
from tests.agent.parts import Table


def make(effect: Effect = "unsafe", *, ran: list[str] | None = None) -> Tool:
    @tool(effect=effect)
    async def act(context: ToolContext, text: str) -> ToolResult:
        """Act."""
        (ran if ran is not None else []).append(text)
        return text_result(f"did {text}")

    return act


def through(text: str = "x") -> ToolCall:
    return call("call_tool", {"name": "act", "arguments": {"text": text}}, id="c1")


class Judge:
    """Allows everything and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, object]] = []

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        self.asked.append((tool.spec.name, tool.effect, dict(call.values)))
        return Verdict("deny", "never") if call.values.get("text") == "bad" else Verdict("allow")


def test_policy_log_and_watchers_see_the_inner_call() -> None:
    judge = Judge()
    table = Table([Answer(calls=(through("a"), through("bad"))), "done"], [make(), CallTool()], policy=judge)
    asyncio.run(run(table.loop))
    assert judge.asked == [("act", "unsafe", {"text": "a"}), ("act", "unsafe", {"text": "bad"})]
    assert table.results() == ["did a", "Not allowed: never"]
    logged = [
        one.payload for one in table.session.log.entries if isinstance(one.payload, ToolStarted | ToolResultEntry)
    ]
    assert {one.name for one in logged} == {"act"}
    assert "call_tool" not in table.trace.text


def test_the_model_is_answered_under_the_name_it_called() -> None:
    table = Table([Answer(calls=(through(),)), "done"], [make(), CallTool()])
    asyncio.run(run(table.loop))
    answered = [message for message in table.model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert [message.name for message in answered] == ["call_tool"]


def test_the_loop_guard_counts_inner_and_plain_calls_alike() -> None:
    ran: list[str] = []
    steps = [Answer(calls=(one,)) for one in (through(), call("act", {"text": "x"})) * 3]
    table = Table([*steps, "done"], [make("pure", ran=ran), CallTool()])
    asyncio.run(run(table.loop))
    assert "not run again" in table.results()[-1]
    assert len(ran) < 6


@pytest.mark.parametrize(("effect", "runs"), [("pure", True), ("unsafe", False)])
def test_after_a_crash_the_inner_effect_decides(effect: Effect, runs: bool) -> None:
    table = Table([], [make(effect), CallTool()])
    assert ("did x" in after_a_crash(table)) == runs


def test_a_begun_call_of_a_tool_that_is_gone_has_an_unknown_outcome() -> None:
    assert UNKNOWN_OUTCOME in after_a_crash(Table([], [CallTool()]))


def after_a_crash(table: Table) -> str:
    async def main() -> None:
        said = AssistantMessage((through(),), producer=SCRIPTED.producer)
        (pending,) = await table.session.assistant(said, reservation="")
        await table.session.started(pending, effect="unsafe", intent=None)
        await table.execution.batch(table.session.pending())

    asyncio.run(main())
    return str(table.session.log.messages()[-1].content)


def test_a_tool_that_appears_in_the_middle_of_a_turn_can_be_called() -> None:
    tools: list[Tool] = [CallTool()]
    table = Table([], tools)

    async def main() -> None:
        for appearing in (make(), None):
            said = AssistantMessage((through(),), producer=SCRIPTED.producer)
            await table.execution.batch(await table.session.assistant(said, reservation=""))
            tools.extend([appearing] if appearing else [])

    asyncio.run(main())
    texts = [one.payload.result.text for one in table.session.log.entries if isinstance(one.payload, ToolResultEntry)]
    assert texts == ["There is no tool 'act'. The tools are: call_tool.", "did x"]
