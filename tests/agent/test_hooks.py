"""Hooks: before a tool they fail closed, elsewhere open; none can hold up or end a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from limpet.agent.hooks import Dispatch, WatchedView
from limpet.agent.loop import run
from limpet.testing.scripted import Answer, call
from limpet.testing.trace import Trace
from limpet.toolkit.hooks import FunctionHook, hook
from limpet.toolkit.schema import tool
from limpet.types.hook import HookEvent, HookPoint, RequestReady, ToolWanted, TurnBegan
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult, text_result
from tests.agent.parts import Table

WANTED = ToolWanted("s", "t", "a.0", "send", '{"to": "x"}')


def saying(name: str, answer: Callable[[HookEvent], Awaitable[str | None]], *points: HookPoint) -> FunctionHook:
    return FunctionHook(name, frozenset(points or ("before_tool",)), answer)


async def silent(event: HookEvent) -> None:
    return None


async def refusing(event: HookEvent) -> str:
    return "not today"


async def failing(event: HookEvent) -> str:
    raise RuntimeError("broken")


async def leaving(event: HookEvent) -> str:
    raise SystemExit(3)


async def hanging(event: HookEvent) -> str:
    await asyncio.sleep(60)
    return ""


async def giving_up(event: HookEvent) -> str:
    raise asyncio.CancelledError


async def odd(event: HookEvent) -> str:
    return 7  # type: ignore[return-value]


def dispatch(*hooks: FunctionHook, trace: Trace | None = None) -> Dispatch:
    return Dispatch(hooks, seconds=0.05, emit=(trace or Trace()).emit, grace=0.05)


def test_silence_lets_a_call_run_and_a_word_refuses_it() -> None:
    assert asyncio.run(dispatch(saying("a", silent)).refusal(WANTED)) == ""
    assert asyncio.run(dispatch(saying("a", silent), saying("b", refusing)).refusal(WANTED)) == "b says: not today"


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (failing, "RuntimeError: broken"),
        (leaving, "SystemExit: 3"),
        (hanging, "did not answer within"),
        (giving_up, "gave up by itself"),
        (odd, "TypeError"),
    ],
)
def test_before_a_tool_a_failure_is_a_no(function: Callable[[HookEvent], Awaitable[str]], why: str) -> None:
    said = asyncio.run(dispatch(saying("guard", function)).refusal(WANTED))
    assert said.startswith("guard could not be asked, which counts as no")
    assert why in said


def test_a_hook_that_will_not_end_is_left_behind() -> None:
    ended = asyncio.Event()

    async def stubborn(event: HookEvent) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return ""

    async def main() -> None:
        hooks = dispatch(saying("mule", stubborn))
        async with asyncio.timeout(10):
            assert "did not answer" in await hooks.refusal(WANTED)
            assert not ended.is_set()
            await hooks.close()
        assert ended.is_set()

    asyncio.run(main())


def test_hooks_are_asked_in_their_order_up_to_the_first_no() -> None:
    asked: list[str] = []

    def noting(name: str, answer: str) -> FunctionHook:
        async def function(event: HookEvent) -> str:
            asked.append(name)
            return answer

        return saying(name, function)

    hooks = dispatch(noting("a", ""), noting("b", "no"), noting("c", ""))
    assert asyncio.run(hooks.refusal(WANTED)) == "b says: no"
    assert asked == ["a", "b"]


def test_watchers_fail_open_and_people_are_told_once() -> None:
    trace, seen = Trace(), []

    async def watching(event: HookEvent) -> None:
        seen.append(event)

    async def main() -> None:
        hooks = dispatch(
            saying("bad", failing, "turn_started"),
            saying("slow", hanging, "turn_started"),
            saying("good", watching, "turn_started"),
            trace=trace,
        )
        for _ in range(2):
            await hooks.tell(TurnBegan("s", "t"))
        await hooks.close()

    asyncio.run(main())
    assert seen == [TurnBegan("s", "t")] * 2
    assert trace.text.count("The hook bad failed at turn_started: RuntimeError: broken") == 1
    assert trace.text.count("The hook slow failed") == 1


def test_a_stop_ends_the_hook_too() -> None:
    ended = asyncio.Event()

    async def patient(event: HookEvent) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return ""

    async def main() -> None:
        hooks = Dispatch([saying("a", patient)], seconds=60, emit=Trace().emit)
        task = asyncio.create_task(hooks.refusal(WANTED))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(main())


def test_events_are_plain_json() -> None:
    told = json.loads(msgspec.json.encode(WANTED))
    assert told["point"] == "before_tool"
    assert msgspec.json.decode(json.dumps(told), type=HookEvent) == WANTED


def test_the_decorator_makes_a_hook() -> None:
    @hook("after_tool", "turn_ended")
    async def look(event: HookEvent) -> None:
        pass

    assert (look.name, look.points) == ("look", {"after_tool", "turn_ended"})
    assert dispatch(look).watches("turn_ended")
    assert not dispatch(look).watches("before_tool")


def table(tmp_path: Path, *hooks: FunctionHook) -> tuple[Table, list[str]]:
    ran: list[str] = []

    @tool(effect="pure")
    async def work(context: ToolContext, name: str) -> ToolResult:
        """Work."""
        ran.append(name)
        return text_result(f"did {name}")

    made = Table(
        [Answer(calls=(call("work", {"name": "x"}),)), "done"], [work], folder=tmp_path, hooks=dispatch(*hooks)
    )
    return made, ran


def test_a_refused_call_does_not_run_and_the_model_reads_why(tmp_path: Path) -> None:
    made, ran = table(tmp_path, saying("guard", refusing))
    asyncio.run(run(made.loop))
    assert made.results() == ["Not allowed: guard says: not today"]
    assert not ran


def test_after_a_tool_its_result_is_told(tmp_path: Path) -> None:
    told: list[HookEvent] = []

    async def watching(event: HookEvent) -> None:
        told.append(event)

    made, ran = table(tmp_path, saying("w", watching, "before_tool", "after_tool"))
    asyncio.run(run(made.loop))
    assert ran == ["x"]
    assert [type(event).__name__ for event in told] == ["ToolWanted", "ToolFinished"]
    assert json.loads(msgspec.json.encode(told[1]))["text"] == "did x"


def test_requests_are_watched_and_stay_as_they_are(tmp_path: Path) -> None:
    told: list[HookEvent] = []

    async def watching(event: HookEvent) -> None:
        told.append(event)

    made, _ = table(tmp_path)
    view = WatchedView(
        made.session, dispatch(saying("w", watching, "before_request")), session="s", turn="t", model="m"
    )
    request = asyncio.run(view.request())
    assert request == asyncio.run(made.session.request())
    assert told == [RequestReady("s", "t", "m", len(request.messages), 1)]
