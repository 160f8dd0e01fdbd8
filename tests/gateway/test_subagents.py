"""Helpers in a gateway: spawned, worked on in lanes of their own, heard of once in the chat that asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.schedule.desk import Timing, Wish
from limpet.store import sessions
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.types.channel import Traits
from tests.gateway.house import House, house, messages
from tests.gateway.test_jobs import made

PLAIN = Traits(buttons=True)
KEY = "agent:main:fake:direct:ann"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def spawn(*tasks: str) -> Reply:
    return Reply(calls=tuple(Call("spawn", json.dumps({"task": task})) for task in tasks))


def is_helper(seen: Seen) -> bool:
    return "You are a helper" in str(messages(seen.body)[0])


def last(seen: Seen) -> str:
    return str(messages(seen.body)[-1])


def script(*tasks: str, delay: float = 0.0) -> Callable[[Seen], Reply]:
    """A model whose main agent spawns helpers for `tasks`, and whose helpers answer after `delay` seconds."""

    def answer(seen: Seen) -> Reply:
        if is_helper(seen):
            return Reply(text=("the sea is blue",), delay=delay)
        if "helper_result" in last(seen):
            return Reply(text=("heard of it",))
        return Reply(text=("on it",)) if "has it" in last(seen) else spawn(*tasks)

    return answer


def last_asked(here: House) -> str:
    """All messages of the newest request of the main agent."""
    return str(messages([seen for seen in here.model.requests if not is_helper(seen)][-1].body))


def turns_of(here: House, key: str) -> int:
    query = "SELECT COUNT(*) FROM turns JOIN sessions ON sessions.id = turns.session WHERE key = ?"
    (found,) = here.agents.state.store.read(lambda connection: connection.execute(query, (key,)).fetchall())
    return int(str(found[0]))


def helpers(here: House) -> list[tuple[str, str]]:
    query = "SELECT state, answer FROM helpers ORDER BY rowid"
    rows = here.agents.state.store.read(lambda connection: connection.execute(query).fetchall())
    return [(str(state), str(answer)) for state, answer in rows]


async def over(here: House, count: int) -> None:
    async with asyncio.timeout(30):
        while sum(state not in ("waiting", "working") for state, _ in helpers(here)) < count:
            await asyncio.sleep(0.02)


def test_c58c_a_result_that_comes_after_the_parents_turn_makes_one_more_and_goes_to_the_chat(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], int, list[tuple[str, str]]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script("look at the sea", delay=0.2)) as here:
            await fake.say("what colour is the sea?")
            await fake.until(lambda: len(fake.answers("ann")) >= 2, within=30)
            await fake.settled()
            return fake.answers("ann"), turns_of(here, KEY), helpers(here)

    answers, turns, found = asyncio.run(main())
    assert answers == ("on it", "heard of it")
    assert turns == 2
    assert found == [("done", "the sea is blue")]


def test_a_helper_has_the_minimal_prompt_and_not_the_tools_that_speak(home: Path) -> None:
    async def main() -> tuple[str, set[str]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script("look at the sea")) as here:
            await fake.say("what colour is the sea?")
            await fake.until(lambda: len(fake.answers("ann")) >= 2, within=30)
            (seen,) = [one for one in here.model.requests if is_helper(one)]
            assert isinstance(seen.body, dict)
            tools: list[dict[str, dict[str, str]]] = seen.body["tools"]
            return str(messages(seen.body)), {one["function"]["name"] for one in tools}

    prompt, tools = asyncio.run(main())
    assert "[Task from the main agent]" in prompt
    assert "# Memory" not in prompt
    assert {"message", "ask", "goal", "plan"}.isdisjoint(tools)
    assert "read_file" in tools


def test_c58b_of_twelve_helpers_as_many_work_as_are_set_and_the_others_in_their_turn(home: Path) -> None:
    async def main() -> tuple[int, list[tuple[str, str]]]:
        fake = FakeChannel(traits=PLAIN)
        tasks = [f"task {number}" for number in range(12)]
        config = "helpers.each = 4"
        async with house(home, fake, script=script(*tasks, delay=0.3), config=config) as here:
            await fake.say("do them")
            await fake.until(lambda: len(helpers(here)) == 12, within=30)
            states = [state for state, _ in helpers(here)]
            await over(here, 12)
            await fake.settled()
            return states.count("working"), helpers(here)

    working, found = asyncio.run(main())
    assert working <= 4
    assert found == [("done", "the sea is blue")] * 12


def test_stop_cascades_and_what_was_stopped_is_told_with_the_next_message(home: Path) -> None:
    spawning = script("one", "two", delay=20.0)

    def answer(seen: Seen) -> Reply:
        return Reply(text=("nothing more",)) if "and now?" in last(seen) else spawning(seen)

    async def main() -> tuple[tuple[str, ...], list[tuple[str, str]], str]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=answer, config="helpers.each = 1") as here:
            await fake.say("do them")
            await fake.until(lambda: len(fake.answers("ann")) >= 1, within=30)
            await fake.until(lambda: any(map(is_helper, here.model.requests)), within=30)
            await fake.say("/stop")
            await over(here, 2)
            await fake.until(lambda: len(fake.answers("ann")) >= 2, within=30)
            await fake.settled()
            await fake.say("and now?")
            await fake.until(lambda: len(fake.answers("ann")) >= 3, within=30)
            return fake.answers("ann"), helpers(here), last_asked(here)

    answers, found, asked = asyncio.run(main())
    assert answers == ("on it", "Stopped, with 2 helpers.", "nothing more")
    assert [state for state, _ in found] == ["cancelled", "cancelled"]
    assert asked.count("The user has stopped the helper") == 2


def test_a_helper_that_fails_is_told_to_its_parent(home: Path) -> None:
    def answer(seen: Seen) -> Reply:
        return Reply(status=400, body={"error": {"message": "no"}}) if is_helper(seen) else script("x")(seen)

    async def main() -> tuple[tuple[str, ...], str]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=answer) as here:
            await fake.say("do it")
            await fake.until(lambda: len(fake.answers("ann")) >= 2, within=30)
            return fake.answers("ann"), helpers(here)[0][0]

    assert asyncio.run(main()) == (("on it", "heard of it"), "failed")


def test_c58f_where_nothing_is_answered_to_a_result_the_result_itself_is_delivered(home: Path) -> None:
    def answer(seen: Seen) -> Reply:
        empty = not is_helper(seen) and "helper_result" in str(messages(seen.body))
        return Reply(text=("",)) if empty else script("look")(seen)

    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=answer):
            await fake.say("do it")
            await fake.until(lambda: any("the sea is blue" in one for one in fake.answers("ann")), within=30)
            await fake.settled()
            return fake.answers("ann")

    assert sum("the sea is blue" in one for one in asyncio.run(main())) == 1


def test_c58e_the_result_of_a_runs_helper_goes_where_the_job_says_in_the_same_run(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], tuple[str, ...], int, int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script("look at the sea", delay=0.2)) as here:
            job = await made(here, Wish("Look", Timing(every="1d"), address=fake.address("g1")))
            await fake.until(lambda: len(fake.answers("g1")) >= 2, within=30)
            await fake.settled()
            runs = here.agents.state.store.read(lambda connection: sessions.under(connection, job.key))
            return fake.answers("g1"), fake.answers("ann"), len(runs), turns_of(here, job.key)

    assert asyncio.run(main()) == (("on it", "heard of it"), (), 1, 2)
