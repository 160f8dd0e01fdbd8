from __future__ import annotations

import asyncio

import pytest

from limpet.errors import RequestError, UpstreamError
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.testing.trace import Trace
from limpet.testing.wires import answer_of, ask, collect, user
from limpet.types.event import ToolBegan, ToolEnded, TurnEnded, TurnStarted
from limpet.types.message import UserMessage


def test_steps_play_in_order_and_requests_are_kept():
    def echo(request):
        last = request.messages[-1]
        assert isinstance(last, UserMessage)
        return f"you said {last.content[0].text}"

    model = ScriptedModel(["one", Answer(calls=(call("t", {"a": 1}),)), echo])

    async def run():
        return [await answer_of(model, ask(user(text))) for text in "abc"]

    first, second, third = asyncio.run(run())
    assert (first.text, third.text) == ("one", "you said c")
    assert (second.stop, second.calls[0].id, second.calls[0].arguments) == ("tool_calls", "call_2_1", '{"a":1}')
    assert len(model.requests) == 3


def test_errors_are_raised_and_the_end_of_the_script_too():
    model = ScriptedModel([UpstreamError("boom")])
    with pytest.raises(UpstreamError):
        asyncio.run(collect(model, ask()))
    with pytest.raises(RequestError, match="script ends"):
        asyncio.run(collect(model, ask()))


def test_forever_repeats_the_last_step():
    model = ScriptedModel(["again"], forever=True)

    async def run():
        return [(await answer_of(model, ask())).text for _ in range(3)]

    assert asyncio.run(run()) == ["again"] * 3


def test_a_trace_joins_deltas_and_renames_what_changes_from_run_to_run():
    trace = Trace()

    async def run():
        trace.emit(TurnStarted("sess-81", "turn-4", 1))
        async for event in ScriptedModel([Answer(text="Hello there", thinking="hm", calls=(call("t"),))]).stream(ask()):
            trace.emit(event)
        trace.emit(ToolBegan("e9.0", "t", "{}"))
        trace.emit(ToolEnded("e9.0", "t", "fine", False, 12))
        trace.emit(TurnEnded("sess-81", "turn-4", "done", "bye"))

    asyncio.run(run())
    assert trace.text.splitlines() == [
        "turn T1 of S1 attempt 1",
        "thinking 'hm'",
        "text 'Hello there'",
        "answer tool_calls 'Hello there' t({})",
        "began C1 t {}",
        "ended C1 t ok 'fine'",
        "turn T1 done 'bye'",
    ]


def test_the_fake_clock_moves_when_told():
    clock = FakeClock(start=1_000)
    asyncio.run(clock.sleep(2.5))
    clock.advance(1)
    assert (clock.now(), clock.monotonic(), clock.slept) == (4_500, 3.5, [2.5])
