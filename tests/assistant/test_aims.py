"""Goals and plans: kept in the log over turns, restarts and summaries, shown to the model, the owner and watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.testing.trace import Trace
from limpet.tools.aims import goal, plan
from limpet.types.usage import Usage
from tests.assistant.room import KEY, home, replies, said


def aim(action: str, text: str = "", **more: float) -> Answer:
    return Answer(calls=(call("goal", {"action": action, "text": text, **more}),))


def steps(*states: str) -> Answer:
    wanted = [{"text": f"step {number}", "state": state} for number, state in enumerate(states, start=1)]
    return Answer(calls=(call("plan", {"steps": wanted}),))


def talk(folder: Path, script: Sequence[Step], lines: Sequence[str]) -> tuple[list[str], ScriptedModel, Trace]:
    model = ScriptedModel([*script, *["ok"] * 9])

    async def main() -> tuple[list[str], Trace]:
        async with home(folder, model, tools=(goal, plan)) as (services, trace):
            for line in lines:
                await Conversation(services, KEY).send(said(line))  # each one as another process: it reads the log
            return replies(services), trace

    found = asyncio.run(main())
    return found[0], model, found[1]


def last(model: ScriptedModel) -> str:
    """The newest user message, runtime block included."""
    return str(model.requests[-1].messages[-1])


def test_goal_and_plan_come_with_each_message(tmp_path: Path) -> None:
    script = [aim("set", "learn to sail"), steps("done", "in_progress", "pending"), aim("progress", "one knot"), "ok"]
    _, model, trace = talk(tmp_path, script, ["go", "and?", "/goal", "/plan"])
    assert "Goal: learn to sail (so far: one knot)" in last(model)
    assert "Plan: 1 of 3 steps done; now: step 2" in last(model)
    assert "aims 'learn to sail' done:'step 1' in_progress:'step 2' pending:'step 3'" in trace.text


def test_the_owner_sees_and_changes_both(tmp_path: Path) -> None:
    lines = [
        "/goal",
        "/goal paint the boat",
        "/goal budget 5 steps",
        "/plan add buy paint",
        "/plan done 1",
        "/plan",
        "hi",
    ]
    answers, model, _ = talk(tmp_path, [], lines)
    assert answers[0].startswith("There is no goal.")
    assert answers[2] == "Goal (open): paint the boat [used: 0 of 5 steps]"
    assert answers[4] == "1. [x] buy paint"
    assert answers[5].startswith("1. [x] buy paint\n/plan add")
    assert "Goal: paint the boat [used: 0 of 5 steps]" in last(model)


def test_a_goal_that_ended_or_belongs_to_another_conversation_is_not_shown(tmp_path: Path) -> None:
    _, model, _ = talk(tmp_path, [aim("set", "x"), "ok"], ["go", "/goal done", "hi"])
    assert "Goal" not in last(model)
    _, model, _ = talk(tmp_path, [aim("set", "y"), "ok"], ["go", "/new", "hi"])
    assert "Goal" not in last(model)


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    script = [aim("done"), aim("set"), steps("in_progress", "in_progress"), "ok"]
    _, model, _ = talk(tmp_path, script, ["go", "/plan done 3", "/goal budget lots"])
    results = [str(request.messages[-1]) for request in model.requests[1:4]]
    assert "there is no open goal" in results[0]
    assert "set needs a text" in results[1]
    assert "more than one step is in_progress" in results[2]


def test_a_used_up_budget_is_told_to_model_and_owner_once(tmp_path: Path) -> None:
    script = [aim("set", "x", steps=2), steps("pending"), steps("done"), "stopping", "ok"]
    answers, model, trace = talk(tmp_path, script, ["go", "more", "more"])
    told = [str(request.messages).count("budget of the goal is used up: 2 of 2 steps") for request in model.requests]
    assert told == [0, 0, 0, 1, 1, 1]
    assert [text.startswith("The budget of the goal") for text in answers] == [False, True, False, False]
    assert "its budget is used up" in last(model)
    assert trace.text.count("notice warning 'The budget of the goal") == 1


def test_the_last_answer_counts_and_the_prefix_stays(tmp_path: Path) -> None:
    spent = Usage(input=1, output=1, cost=2_000_000)
    script = [aim("set", "x", dollars=1.5), Answer(text="done", usage=spent), "ok"]
    answers, model, _ = talk(tmp_path, script, ["go", "more"])
    assert [text.startswith("The budget of the goal") for text in answers] == [False, True, False]
    before, after = model.requests[1], model.requests[2]
    assert after.messages[: len(before.messages)] == before.messages
    assert "$2.00 of $1.5 are spent" in str(after.messages[-1])


def test_more_budget_goes_on(tmp_path: Path) -> None:
    script = [aim("set", "x", steps=1), "ok", "ok"]
    _, model, _ = talk(tmp_path, script, ["go", "/goal budget 50 steps", "more"])
    assert "its budget is used up" not in last(model)
    assert "of 50 steps" in last(model)
