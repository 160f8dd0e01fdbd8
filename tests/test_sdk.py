"""The SDK: an agent in a program, with a scripted model and a real home."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import limpet
from limpet import Agent, Reply, ask, tool
from limpet.errors import ConfigError, InputError, RequestError, UserError
from limpet.sdk import Settings
from limpet.testing.channel import FakeChannel
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.types.approval import Approval
from limpet.types.channel import Traits
from limpet.types.event import Event, TextDelta, ToolEnded, TurnEnded

DANGER = Answer(calls=(call("exec", {"command": "rm -rf /", "place": "host"}),))


@tool
def tide(place: str) -> str:
    """When the next high tide is."""
    return f"17:42 at {place}"


def run(home: Path, script: list[Step], use: Callable[[Agent], Awaitable[object]], **more: object) -> ScriptedModel:
    model = ScriptedModel(script)

    async def main() -> None:
        async with Agent(home, model=model, **more) as agent:  # pyright: ignore[reportArgumentType]
            await use(agent)

    asyncio.run(main())
    return model


def test_a_question_is_answered_and_counted(tmp_path: Path) -> None:
    replies: list[Reply] = []

    async def use(agent: Agent) -> None:
        replies.append(await agent.ask("hello"))

    run(tmp_path, ["hi there"], use)
    assert str(replies[0]) == "hi there"
    assert (replies[0].usage.input, replies[0].usage.output) == (100, 10)
    assert replies[0].turn


def test_own_tools_run_unasked(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        assert str(await agent.ask("when?")) == "then"

    model = run(tmp_path, [Answer(calls=(call("tide", {"place": "Brest"}),)), "then"], use, tools=[tide])
    assert "17:42 at Brest" in str(model.requests[1].messages[-1])


def test_a_conversation_is_there_the_next_time(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        await agent.session("ann").ask("hello")

    run(tmp_path, ["one"], use)
    later = run(tmp_path, ["two"], use)
    assert len(later.requests[0].messages) == 3


def test_a_stream_tells_what_happens_and_ends_with_the_turn(tmp_path: Path) -> None:
    events: list[Event] = []

    async def use(agent: Agent) -> None:
        events.extend([event async for event in agent.stream("when?")])

    run(tmp_path, [Answer(calls=(call("tide", {"place": "Brest"}),)), "at 17:42"], use, tools=[tide])
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "at 17:42"
    assert [event.text for event in events if isinstance(event, ToolEnded)] == ["17:42 at Brest"]
    assert [event.state for event in events if isinstance(event, TurnEnded)] == ["done"]


def test_streams_of_two_sessions_do_not_mix(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        async def heard(name: str) -> set[str]:
            events = [event async for event in agent.session(name).stream("x")]
            return {event.session for event in events if isinstance(event, TurnEnded)}

        first, second = await asyncio.gather(heard("ann"), heard("bob"))
        assert len(first) == len(second) == 1
        assert first != second

    run(tmp_path, [Answer("one", delay=0.05), Answer("two", delay=0.05)], use)


def test_leaving_a_stream_stops_its_turn(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        stream = agent.stream("x")
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        await stream.aclose()
        assert str(await agent.ask("again")) == "two"

    model = run(tmp_path, [Answer("one", hang=True), "two"], use)
    assert "one" in str(model.requests[1].messages)


def test_a_turn_that_was_stopped_says_so(tmp_path: Path) -> None:
    model = ScriptedModel([Answer("one", hang=True)])

    async def main() -> Reply:
        async with Agent(tmp_path, model=model) as agent, asyncio.timeout(20):
            asked = asyncio.create_task(agent.ask("x"))
            while not model.requests:
                await asyncio.sleep(0.01)
            agent.session().stop()
            return await asked

    reply = asyncio.run(main())
    assert reply.state == "cancelled"
    assert reply.turn


def test_what_is_said_at_once_is_said_one_after_the_other(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        replies = await asyncio.gather(*(agent.ask(f"m{number}") for number in range(3)))
        assert [str(one) for one in replies] == ["a1", "a2", "a3"]

    run(tmp_path, [Answer(f"a{number}", delay=0.02) for number in (1, 2, 3)], use)


@pytest.mark.parametrize("word", [True, False])
def test_the_program_decides_what_policy_asks(tmp_path: Path, word: bool) -> None:
    asked: list[str] = []

    async def approve(approval: Approval) -> bool:
        asked.append(approval.wanted.plan)
        return word

    async def use(agent: Agent) -> None:
        await agent.ask("x")

    sent = Answer(calls=(call("exec", {"command": "shutdown --help | head -0; echo not here", "place": "host"}),))
    run(tmp_path, [sent, "done"], use, approve=approve)
    assert len(asked) == 1
    assert "shutdown" in asked[0]


def test_without_a_function_that_decides_what_is_asked_is_refused(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        assert str(await agent.ask("x")) == "left it"

    model = run(tmp_path, [DANGER, "left it"], use)
    assert "nobody" in str(model.requests[1].messages[-1]).lower() or "refused" in str(model.requests[1].messages[-1])


def test_files_go_along_and_bad_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "boats.csv").write_text("Nautilus,Ann\n")

    async def use(agent: Agent) -> None:
        await agent.ask("read", files=[tmp_path / "boats.csv"])
        with pytest.raises(InputError, match=r"missing\.csv"):
            await agent.ask("read", files=[tmp_path / "missing.csv"])

    model = run(tmp_path / "home", ["read it"], use)
    assert "Nautilus,Ann" in str(model.requests[0].messages[-1])


def test_what_ended_a_turn_is_raised_and_the_next_one_works(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        with pytest.raises(RequestError, match="no such model"):
            await agent.ask("x")
        assert str(await agent.ask("again")) == "fine"

    run(tmp_path, [RequestError("no such model"), "fine"], use)


def test_commands_work_as_in_a_chat(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        reply = await agent.ask("/status")
        assert "scripted-1" in str(reply)
        assert reply.turn == ""

    run(tmp_path, [], use)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"agent.limits.steps": "many"}, "setting agent.limits.steps: expected a whole number"),
        ({"agent.nothing": 1}, "there is no setting agent.nothing"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(tmp_path: Path, settings: Settings, match: str) -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match=match):
            async with Agent(tmp_path, settings=settings):
                pass

    asyncio.run(main())


def test_settings_of_the_program_are_used(tmp_path: Path) -> None:
    async def use(agent: Agent) -> None:
        assert str(await agent.ask("x")) == "so far"

    model = run(tmp_path, [Answer(calls=(call("list_dir"),)), "so far"], use, settings={"agent.limits.steps": 1})
    assert model.requests[-1].tool_choice == "none"


def test_outside_its_block_an_agent_says_how_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not open"):
        Agent(tmp_path).session()


def test_ask_needs_no_event_loop_and_bears_one(tmp_path: Path) -> None:
    assert str(ask("x", home=tmp_path, model=ScriptedModel(["one"]))) == "one"

    async def notebook() -> str:
        return str(ask("x", home=tmp_path, model=ScriptedModel(["two"])))

    assert asyncio.run(notebook()) == "two"


def test_everything_that_the_package_offers_is_there() -> None:
    for name in ("Agent", "LimpetError", "Reply", "Session", "ToolContext", "ToolError", "ask", "hook", "tool"):
        assert getattr(limpet, name).__name__ == name
    with pytest.raises(AttributeError):
        limpet.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_a_program_may_have_a_gateway_with_channels_of_its_own(tmp_path: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake, stop = FakeChannel(traits=Traits()), asyncio.Event()
        agent = Agent(tmp_path, model=ScriptedModel(["hi ann"]), settings={"gateway.port": 0, "agent.limits.steps": 3})
        serving = asyncio.create_task(agent.serve(fake, owners=["ann"], stop=stop))
        await fake.say("hello")
        await fake.until(lambda: bool(fake.answers("ann")), within=30)
        stop.set()
        await serving
        return fake.answers("ann")

    assert asyncio.run(main()) == ("hi ann",)
