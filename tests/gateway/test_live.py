"""What a chat sees of a turn while it goes on: marks on the message that is worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.testing.platform import Reacted
from limpet.types.channel import Traits
from tests.gateway.house import echo, house, told

MARKS = Traits(reactions=True)


def marks_of(home: Path, script: Callable[[Seen], Reply]) -> list[str]:
    async def main() -> list[str]:
        fake = FakeChannel(traits=MARKS)
        async with house(home, fake, script=script, config="gateway.turns = 2"):
            await fake.say("hello")
            await told(fake, 1)
            await fake.settled()
        return [one.emoji for one in fake.platform.of(Reacted)]

    return asyncio.run(main())


def test_the_message_that_is_worked_on_is_marked_until_it_is_answered(home: Path) -> None:
    assert marks_of(home, echo) == ["👀", ""]


def test_the_mark_says_that_tools_are_used(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=("done",), delay=0.2) if b'"role":"tool"' in seen.raw else Reply(calls=(Call("list_dir"),))

    assert marks_of(home, script) == ["👀", "⚡", ""]


def test_the_mark_of_a_turn_that_failed_stays(home: Path) -> None:
    assert marks_of(home, lambda seen: Reply(status=400)) == ["👀", "👎"]
