"""The heartbeat of a running gateway: what happens wakes it, and only it has the tool that answers it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

from limpet.store import processes, spending, wakes
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.types.channel import Traits
from tests.gateway.house import House, echo, house, messages, told

PLAIN = Traits(buttons=True)
BELL = Reply(calls=(Call("respond", '{"notify": true, "text": "The bell rings"}'),))


def is_beat(seen: Seen) -> bool:
    return "[The job heartbeat is due" in str(messages(seen.body))


def tools_of(seen: Seen) -> set[str]:
    assert isinstance(seen.body, dict)
    given: list[dict[str, dict[str, str]]] = seen.body["tools"]
    return {one["function"]["name"] for one in given}


async def ring(here: House) -> None:
    state, now = here.agents.state, time.time_ns() // 1_000_000
    await state.store.write(
        lambda c: wakes.add(c, "e1", agent="main", source="bell", text="ring", trust="owner", soon=True, now=now)
    )
    state.nudges.wake()


def test_an_event_that_says_now_has_a_beat_whose_response_is_delivered(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], list[set[str]], tuple[int, int]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=lambda seen: BELL if is_beat(seen) else echo(seen)) as here:
            await fake.say("hi")
            await told(fake, 1)
            await ring(here)
            said = await told(fake, 2)
            beats = here.agents.state.store.read(lambda c: spending.by_beats(c, since=0))
            return said, [tools_of(seen) for seen in here.model.requests], beats

    said, tools, (asked, _) = asyncio.run(main())
    assert said == ("echo: hi", "The bell rings")
    assert ["respond" in one for one in tools] == [False, True]
    assert asked == 1


def test_a_command_that_ended_in_the_background_wakes_it(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if is_beat(seen):
            return BELL
        if "'role': 'tool'" in str(seen.body):
            return Reply(text=("it runs",))
        return Reply(calls=(Call("exec", json.dumps({"command": "sleep 0.5", "wait": 0})),))

    async def main() -> tuple[tuple[str, ...], str]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await fake.say("run it")
            said = await told(fake, 2)
            return said, here.asked[-1]

    said, asked = asyncio.run(main())
    assert said == ("it runs", "The bell rings")
    assert processes.SOURCE in asked
    assert "p1 (sleep 0.5) of the conversation agent:main:fake:direct:ann ended with exit code 0" in asked


def test_elsewhere_nothing_is_answered_with_respond(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        last = messages(seen.body)[-1]
        if isinstance(last, dict) and last.get("role") == "tool":
            return Reply(text=(str(last["content"]),))
        return BELL

    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script):
            await fake.say("hi")
            return await told(fake, 1)

    (said,) = asyncio.run(main())
    assert "only a heartbeat is answered with it" in said
