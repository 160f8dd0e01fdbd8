from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from limpet.errors import NotAcceptedError, NotReadyError, RefusedError, UnsureError
from limpet.testing.channel import FakeChannel, Ways
from limpet.testing.platform import FakePlatform, Kind, Met, Sent, Trouble
from limpet.types.channel import Traits
from tests.channel.harness import RecordingDesk, piece, running

CHILD = Path(__file__).with_name("echo_child.py")


def test_what_was_said_and_sent_is_seen_by_a_process_that_comes_later(tmp_path: Path) -> None:
    async def scene() -> None:
        first, desk = FakeChannel(platform=FakePlatform(tmp_path)), RecordingDesk()
        async with running(first, desk):
            await first.say("hello")
            await desk.got(1)
            await first.settled()
            await first.send(piece(first.address("ann"), "hi"))
            await first.say("are you there?")
        later = FakeChannel(platform=FakePlatform(tmp_path))
        assert later.answers("ann") == ("hi",)
        assert "are you there?" in [one.text for one in later.visible("ann")]

    asyncio.run(scene())


def test_a_line_that_a_killed_process_left_half_written_never_happened(tmp_path: Path) -> None:
    platform = FakePlatform(tmp_path)
    platform.put(lambda number: Trouble(number, "lose"))
    with (tmp_path / "platform.jsonl").open("ab") as file:
        file.write(b'{"type":"met","trou')
    other = FakePlatform(tmp_path)
    other.put(lambda number: Trouble(number, "refuse"))
    assert [one.kind for one in platform.of(Trouble)] == [one.kind for one in other.of(Trouble)] == ["lose", "refuse"]


def test_a_trouble_is_used_up_by_whoever_meets_it(tmp_path: Path) -> None:
    one, other = FakePlatform(tmp_path), FakePlatform(tmp_path)
    one.put(lambda number: Trouble(number, "lose", times=2))
    assert one.meet("send")
    assert other.meet("send")
    assert not one.meet("send")
    assert len(other.of(Met)) == 2


@pytest.mark.parametrize(
    ("kind", "error", "shown"),
    [
        ("refuse", NotAcceptedError, 0),
        ("limit", NotAcceptedError, 0),
        ("reject", RefusedError, 0),
        ("unsure", UnsureError, 0),
        ("lose", UnsureError, 1),
    ],
)
def test_troubles_of_a_send(kind: Kind, error: type[Exception], shown: int) -> None:
    async def scene() -> None:
        fake = FakeChannel()
        async with running(fake, RecordingDesk()):
            fake.fail(kind, chat="ann")
            await fake.send(piece(fake.address("bob"), "another chat"))
            with pytest.raises(error):
                await fake.send(piece(fake.address("ann"), "hi"))
            assert len(fake.answers("ann")) == shown

    asyncio.run(scene())


def test_a_platform_that_is_not_ready_takes_nothing() -> None:
    async def scene() -> None:
        fake, desk = FakeChannel(), RecordingDesk()
        fake.ready(False)
        task = asyncio.create_task(fake.run(desk))
        await fake.say("hello")
        with pytest.raises(NotReadyError):
            await fake.send(piece(fake.address("ann"), "hi"))
        assert not desk.arrivals
        fake.ready(True)
        await desk.got(1)
        await fake.send(piece(fake.address("ann"), "hi"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scene())


def test_events_come_doubled_shuffled_and_again() -> None:
    async def scene() -> None:
        fake, desk = FakeChannel(), RecordingDesk()
        first = await fake.say("one")
        await fake.say("two")
        fake.doubled(True)
        fake.shuffled(True)
        async with running(fake, desk):
            await desk.got(4)
            assert [one.text for one in desk.arrivals] == ["two", "two", "one", "one"]
            fake.doubled(False)
            await fake.settled()
            fake.again(first)
            assert (await desk.got(5))[4].event == first.event

    asyncio.run(scene())


def test_a_repeatable_platform_drops_the_second_try_of_a_key() -> None:
    async def scene() -> None:
        fake = FakeChannel(traits=Traits(repeatable=True, needs_link=False))
        fake.fail("lose")
        with pytest.raises(UnsureError):
            await fake.send(piece(fake.address("ann"), "hi", key="k"))
        await fake.send(piece(fake.address("ann"), "hi", key="k"))
        assert fake.answers("ann") == ("hi",)
        assert len(fake.platform.of(Sent)) == 1

    asyncio.run(scene())


def test_edits_reactions_and_answers_are_shown() -> None:
    async def scene() -> None:
        fake, desk = FakeChannel(), RecordingDesk()
        async with running(fake, desk):
            said = await fake.say("hello", chat="room", ways=Ways(in_group=True))
            ours = await fake.send(piece(said.address, "thinking", reply_to=said.message))
            await fake.edit(piece(said.address, "done"), ours)
            await fake.react(said.address, said.message, "👀")
            asked, answer = fake.visible("room")
            assert asked.reaction == "👀"
            assert (answer.text, answer.edits, answer.reply_to) == ("done", ("thinking",), said.message)

    asyncio.run(scene())


def test_what_a_killed_process_did_not_acknowledge_is_given_to_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        people = FakeChannel(platform=FakePlatform(tmp_path))
        texts = [f"number {at}" for at in range(30)]
        child = await asyncio.create_subprocess_exec(sys.executable, CHILD, tmp_path)
        for at, text in enumerate(texts):
            await people.say(text)
            if at == 10:
                await people.until(lambda: len(people.answers("ann")) >= 3, within=30)
                child.kill()
                await child.wait()
        second = await asyncio.create_subprocess_exec(sys.executable, CHILD, tmp_path)
        await people.settled(within=30)
        second.kill()
        await second.wait()
        answers = list(people.answers("ann"))
        assert list(dict.fromkeys(answers)) == texts
        assert len(answers) <= len(texts) + 1  # the child keeps no inbox: one may have been answered and not taken

    asyncio.run(scene())
