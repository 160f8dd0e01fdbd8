"""Tool execution: every call gets exactly one result, whatever happens."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from limpet.agent.execute import PathLocks
from limpet.agent.loop import run
from limpet.errors import LeaseLostError, ToolError
from limpet.session.project import UNKNOWN_OUTCOME
from limpet.testing.scripted import SCRIPTED, Answer, call
from limpet.toolkit.schema import tool
from limpet.types.message import AssistantMessage
from limpet.types.ports import EVERYWHERE, BoundCall, Decision, Scope, Tool, ToolContext, Verdict
from limpet.types.tool import FileIntent, ToolResult, text_result
from tests.agent.parts import Table


class Recorder:
    """Tools that note when they begin and end."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def make(self, *, exclusive: bool = False) -> Tool:
        @tool(effect="pure", exclusive=exclusive, writes=("path",))
        async def work(context: ToolContext, name: str, path: str = "") -> ToolResult:
            """Work a little."""
            self.steps.append(f"+{name}")
            await asyncio.sleep(0.01)
            self.steps.append(f"-{name}")
            return text_result(name)

        return work


def ask(*calls: dict[str, str]) -> list[Answer | str]:
    return [Answer(calls=tuple(call("work", arguments) for arguments in calls)), "done"]


def test_calls_of_a_batch_run_together_and_answer_in_their_order(tmp_path: Path) -> None:
    recorder = Recorder()
    table = Table(ask({"name": "a"}, {"name": "b"}), [recorder.make()], folder=tmp_path)
    asyncio.run(run(table.loop))
    assert recorder.steps[:2] == ["+a", "+b"]
    assert table.results() == ["a", "b"]


def test_an_exclusive_tool_runs_alone(tmp_path: Path) -> None:
    recorder = Recorder()
    table = Table(ask({"name": "a"}, {"name": "b"}), [recorder.make(exclusive=True)], folder=tmp_path)
    asyncio.run(run(table.loop))
    assert recorder.steps == ["+a", "-a", "+b", "-b"]


def test_writes_to_one_path_take_turns_however_it_is_written(tmp_path: Path) -> None:
    recorder = Recorder()
    calls = ask({"name": "a", "path": "x.txt"}, {"name": "b", "path": "./x.txt"}, {"name": "c", "path": "y.txt"})
    table = Table(calls, [recorder.make()], folder=tmp_path)
    asyncio.run(run(table.loop))
    steps = [step for step in recorder.steps if step[1] != "c"]
    assert steps == ["+a", "-a", "+b", "-b"]
    assert recorder.steps.index("+c") < recorder.steps.index("-a")


def test_locks_are_forgotten_when_nobody_holds_them() -> None:
    async def main() -> None:
        locks = PathLocks()
        async with locks.holding(["b", "a", "a"]):
            pass
        assert vars(locks) == {"_locks": {}, "_users": {}}

    asyncio.run(main())


def test_unknown_tools_bad_arguments_and_exceptions_are_results() -> None:
    @tool(effect="pure")
    async def break_(context: ToolContext, how: str) -> ToolResult:
        """Break."""
        if how == "kindly":
            raise ToolError("not today", hint="try tomorrow")
        raise ZeroDivisionError("oh")

    calls = (
        call("nothing"),
        call("break_", {}),
        call("break_", {"how": "kindly"}),
        call("break_", {"how": "badly"}),
    )
    table = Table([Answer(calls=calls), "done"], [break_])
    asyncio.run(run(table.loop))
    unknown, missing, kindly, badly = table.results()
    assert "There is no tool 'nothing'. The tools are: break_" in unknown
    assert "how" in missing
    assert kindly == "not today\ntry tomorrow"
    assert "ZeroDivisionError" in badly


@pytest.mark.parametrize(("decision", "said"), [("deny", "Not allowed: no"), ("ask", "Not approved by the owner: no")])
def test_what_policy_refuses_is_not_run(decision: Decision, said: str) -> None:
    class No:
        def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
            return Verdict(decision, "no")

    recorder = Recorder()
    table = Table(ask({"name": "a"}), [recorder.make()], policy=No())
    asyncio.run(run(table.loop))
    assert table.results() == [said]
    assert recorder.steps == []


def test_a_lost_lease_ends_the_batch() -> None:
    @tool(effect="unsafe")
    async def act(context: ToolContext) -> ToolResult:
        """Act."""
        raise AssertionError("acted without a lease")

    table = Table([Answer(calls=(call("act"), call("act"))), "done"], [act])

    async def lost(*_: object, **__: object) -> None:
        raise LeaseLostError("gone")

    table.session.started = lost  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(LeaseLostError):
        asyncio.run(run(table.loop))


def test_the_third_equal_call_is_nudged_and_the_fifth_not_run() -> None:
    runs = 0

    @tool(effect="pure")
    async def poll(context: ToolContext) -> ToolResult:
        """Poll."""
        nonlocal runs
        runs += 1
        return text_result("same")

    table = Table([*[Answer(calls=(call("poll"),)) for _ in range(6)], "done"], [poll])
    asyncio.run(run(table.loop))
    texts = table.results()
    assert ["Change your approach" in text for text in texts[:4]] == [False, False, True, True]
    assert runs == 4
    assert "not run again" in texts[4]


def asked(name: str) -> AssistantMessage:
    return AssistantMessage((call(name, {"text": "new"}, id="c1"),), producer=SCRIPTED.producer)


@pytest.mark.parametrize(("effect", "runs"), [("pure", True), ("idempotent", True), ("unsafe", False)])
def test_a_started_call_runs_again_only_where_that_is_harmless(effect: str, runs: bool) -> None:
    @tool(effect=effect)  # pyright: ignore[reportArgumentType]
    async def act(context: ToolContext, text: str) -> ToolResult:
        """Act."""
        return text_result("ran")

    table = Table([], [act])

    async def main() -> None:
        (again,) = await table.session.assistant(asked("act"), reservation="")
        await table.session.started(again, effect="unsafe", intent=None)
        await table.execution.batch(table.session.pending())

    asyncio.run(main())
    text = str(table.session.log.messages()[-1].content)
    assert ("ran" in text) == runs
    assert (UNKNOWN_OUTCOME in text) != runs


@pytest.mark.parametrize(
    ("now", "expected"), [("old", "ran"), ("new", "Done before"), ("other", UNKNOWN_OUTCOME), (None, UNKNOWN_OUTCOME)]
)
def test_an_interrupted_write_is_compared_by_hash(tmp_path: Path, now: str | None, expected: str) -> None:
    target = tmp_path / "a.txt"
    if now is not None:
        target.write_text(now)
    intent = FileIntent(str(target), before=_sha("old"), after=_sha("new"))

    @tool(effect="file", writes=())
    async def put(context: ToolContext, text: str) -> ToolResult:
        """Put."""
        return text_result("ran")

    table = Table([], [put], folder=tmp_path)

    async def main() -> None:
        (again,) = await table.session.assistant(asked("put"), reservation="")
        await table.session.started(again, effect="file", intent=intent)
        await table.execution.batch(table.session.pending())

    asyncio.run(main())
    assert expected in str(table.session.log.messages()[-1].content)


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
