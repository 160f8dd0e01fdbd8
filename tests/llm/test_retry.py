from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from limpet.errors import ModelError, RateLimitError, RequestError, UpstreamError
from limpet.llm.retry import Patience, Retrying
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import ScriptedModel
from limpet.testing.trace import Trace
from limpet.testing.wires import ask
from limpet.types.event import ModelEvent, TextDelta
from limpet.types.message import Request


class Breaking(ScriptedModel):
    """Shows some text, then fails; answers from its script after `times` failures."""

    def __init__(self, error: ModelError, times: int = 1) -> None:
        super().__init__(["fine"])
        self._left = times
        self._error = error

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        if self._left:
            self._left -= 1
            yield TextDelta("half")
            raise self._error
        async for event in super().stream(request):
            yield event


def play(model: ScriptedModel, **settings) -> tuple[str, FakeClock]:
    clock, trace = FakeClock(), Trace()

    async def run():
        retrying = Retrying(model, sleep=clock.sleep, chance=lambda: 0.0, patience=Patience(**settings))
        async for event in retrying.stream(ask()):
            trace.emit(event)

    asyncio.run(run())
    return trace.text, clock


def test_a_broken_answer_is_taken_back_and_asked_for_again():
    text, clock = play(Breaking(UpstreamError("boom", provider="p")))
    assert text.splitlines() == [
        "text 'half'",
        "reset 'p: boom'",
        "notice warning 'p: boom. Asking again in 0.5 s.'",
        "text 'fine'",
        "answer stop 'fine'",
    ]
    assert clock.slept == [0.5]


def test_without_anything_shown_there_is_only_a_notice():
    text, _ = play(ScriptedModel([UpstreamError("boom"), "fine"]))
    assert text.splitlines()[0] == "notice warning 'boom. Asking again in 0.5 s.'"


def test_the_provider_says_how_long_up_to_five_seconds():
    _, clock = play(ScriptedModel([RateLimitError("slow", retry_after=3), "fine"]))
    assert clock.slept == [3.0]
    with pytest.raises(RateLimitError):
        play(ScriptedModel([RateLimitError("slow", retry_after=1800), "fine"]))


def test_patience_ends():
    with pytest.raises(UpstreamError, match="second"):
        play(ScriptedModel([UpstreamError("first"), UpstreamError("second"), "fine"]))
    text, clock = play(ScriptedModel([UpstreamError("1"), UpstreamError("2"), "fine"]), attempts=3)
    assert text.endswith("answer stop 'fine'")
    assert clock.slept == [0.5, 1.0]


def test_what_does_not_pass_is_raised_at_once():
    with pytest.raises(RequestError):
        play(ScriptedModel([RequestError("no"), "fine"]))
