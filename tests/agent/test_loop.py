"""The loop: what it asks, what it journals, when it ends."""

from __future__ import annotations

import asyncio

import pytest

from limpet.agent.limits import Limits
from limpet.agent.loop import run
from limpet.errors import RequestError, TurnStopped, UpstreamError
from limpet.testing.scripted import Answer, call
from limpet.toolkit.schema import tool
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result
from limpet.types.usage import Usage
from tests.agent.parts import Table


@tool(effect="pure")
async def look(context: ToolContext, word: str = "") -> ToolResult:
    """Look."""
    return text_result(f"saw {word}")


@tool(effect="pure")
async def finish(context: ToolContext) -> ToolResult:
    """Say that there is nothing more to say."""
    return ToolResult(content=(), ends_turn=True)


def test_an_answer_without_calls_ends_the_turn() -> None:
    table = Table(["hello"])
    asyncio.run(run(table.loop))
    assert table.session.kinds() == ["prompt", "user", "assistant"]
    assert table.session.last == "hello"


def test_calls_are_journaled_before_they_run_and_their_results_after() -> None:
    table = Table([Answer(calls=(call("look", {"word": "a"}),)), "done"], [look])
    asyncio.run(run(table.loop))
    assert table.session.kinds() == ["prompt", "user", "assistant", "tool_result", "assistant"]
    assert table.results() == ["saw a"]


def test_messages_that_came_in_meanwhile_go_with_the_results() -> None:
    table = Table([Answer(calls=(call("look"),)), "done"], [look])
    table.session.waiting.append("and this")
    asyncio.run(run(table.loop))
    assert "and this" in str(table.model.requests[1].messages[-1])


def test_a_message_at_the_end_is_answered_in_the_same_turn() -> None:
    table = Table(["one", "two"])
    table.session.waiting.append("more")
    asyncio.run(run(table.loop))
    assert [len(request.messages) for request in table.model.requests] == [1, 3]
    assert table.session.last == "two"


def test_a_tool_may_end_the_turn() -> None:
    table = Table([Answer(calls=(call("finish"),))], [finish])
    asyncio.run(run(table.loop))
    assert table.session.ended
    assert len(table.model.requests) == 1


def test_three_empty_answers_are_an_error() -> None:
    table = Table(["", "", ""])
    with pytest.raises(UpstreamError, match="empty"):
        asyncio.run(run(table.loop))


def test_errors_of_the_model_leave_the_log_as_it_is() -> None:
    table = Table([Answer(calls=(call("look"),)), RequestError("no")], [look])
    with pytest.raises(RequestError):
        asyncio.run(run(table.loop))
    assert table.session.kinds()[-1] == "tool_result"


@pytest.mark.parametrize(
    "limits", [Limits(steps=2), Limits(dollars=0.00002), Limits(minutes=0.0001)], ids=["steps", "money", "time"]
)
def test_a_limit_ends_with_words_asked_for_without_tools(limits: Limits) -> None:
    @tool(effect="pure")
    async def wait(context: ToolContext, n: int) -> ToolResult:
        """Take time."""
        table.clock.advance(1)
        return text_result(str(n))

    script = [Answer(calls=(call("wait", {"n": n}),), usage=Usage(input=1, cost=15)) for n in range(2)]
    table = Table([*script, "so far"][-3 if limits.minutes >= 1 else -2 :], [wait], limits=limits)
    asyncio.run(run(table.loop))
    assert table.session.last == "so far"
    assert table.model.requests[-1].tool_choice == "none"
    assert "limit" in str(table.model.requests[-1].messages[-1])


def test_eighty_percent_of_a_limit_is_said_once() -> None:
    script = [Answer(calls=(call("look", {"word": str(n)}),)) for n in range(9)]
    table = Table([*script, "done"], [look], limits=Limits(steps=10))
    asyncio.run(run(table.loop))
    assert table.trace.text.count("of its limits") == 1


def test_stop_cancels_the_request_and_keeps_what_was_shown() -> None:
    async def main() -> None:
        table = Table([Answer(text="some words", hang=True)])
        running = asyncio.create_task(run(table.loop))
        while "text" not in table.trace.text:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        table.control.stop()
        with pytest.raises(TurnStopped):
            await running
        assert "".join(table.control.shown) == "some words"

    asyncio.run(main())


def test_stop_between_two_steps_asks_nothing_more() -> None:
    @tool(effect="pure")
    async def halt(context: ToolContext) -> ToolResult:
        """Stop the turn from inside."""
        table.control.stop()
        await asyncio.sleep(0)
        return text_result("late")

    table = Table([Answer(calls=(call("halt"),)), "never"], [halt])
    with pytest.raises(TurnStopped):
        asyncio.run(run(table.loop))
    assert len(table.model.requests) == 1
