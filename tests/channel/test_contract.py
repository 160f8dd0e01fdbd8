"""What every channel has to do: run on each platform's harness."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from limpet.errors import ChannelError, InputError, NotAcceptedError, NotReadyError, RefusedError, UnsureError
from limpet.types.channel import ALL as ANY
from limpet.types.channel import Channel, MenuEntry
from limpet.types.envelope import Choice
from tests.channel.discord import DiscordHarness
from tests.channel.email import EmailHarness
from tests.channel.fake import FakeHarness
from tests.channel.harness import Fault, Harness, RecordingDesk, Say, Skill, piece, running
from tests.channel.irc import IrcHarness
from tests.channel.matrix import MatrixHarness
from tests.channel.mqtt import MqttHarness
from tests.channel.slack import SlackHarness
from tests.channel.telegram import TelegramHarness
from tests.channel.xmpp import XmppHarness

HARNESSES: dict[str, Callable[[Path], Harness]] = {
    "discord": DiscordHarness,
    "fake": lambda _: FakeHarness(),
    "fake_in_a_file": lambda folder: FakeHarness(str(folder)),
    "slack": SlackHarness,
    "telegram": TelegramHarness,
    "irc": IrcHarness,
    "matrix": MatrixHarness,
    "xmpp": XmppHarness,
    "mqtt": MqttHarness,
    "email": EmailHarness,
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    return HARNESSES[request.param](tmp_path)


def need(harness: Harness, *skills: Skill) -> None:
    missing = set(skills) - harness.skills
    if missing:
        pytest.skip(f"the platform has no {', '.join(sorted(missing))}")


@contextlib.asynccontextmanager
async def stage(harness: Harness, desk: RecordingDesk | None = None) -> AsyncGenerator[tuple[Channel, RecordingDesk]]:
    """The platform, a channel at work on it and its desk."""
    desk = desk or RecordingDesk()
    async with harness:
        channel = harness.make()
        async with running(channel, desk):
            yield channel, desk


def test_an_arrival_says_who_said_what_where(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            message = await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            assert (arrival.text, arrival.sender) == ("hello", harness.sender("ann"))
            assert arrival.address == harness.address("direct")
            assert (arrival.address.channel, arrival.address.account) == (channel.name, channel.account)
            assert arrival.message == message
            assert arrival.event
            assert arrival.sender_name
            assert not arrival.in_group

    asyncio.run(scene())


def test_messages_of_a_chat_arrive_in_order_and_once(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (_, desk):
            for number in range(5):
                await harness.say(Say(f"number {number}"))
            arrivals = await desk.got(5)
            assert [one.text for one in arrivals] == [f"number {number}" for number in range(5)]
            assert len({one.event for one in arrivals}) == 5

    asyncio.run(scene())


def test_two_messages_of_the_same_words_are_two_events(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (_, desk):
            await harness.say(Say("again"))
            await harness.say(Say("again"))
            first, second = await desk.got(2)
            assert first.event != second.event

    asyncio.run(scene())


def test_what_was_said_in_a_group_tells_whether_the_bot_is_meant(harness: Harness) -> None:
    need(harness, "groups", "mentions")

    async def scene() -> None:
        async with stage(harness) as (_, desk):
            await harness.say(Say("hi all", sender="bob", place="group"))
            await harness.say(Say("hi", sender="bob", place="group", mention=True))
            plain, meant = await desk.got(2)
            assert plain.in_group
            assert plain.address == harness.address("group")
            assert plain.sender == harness.sender("bob")
            assert [plain.mentioned, meant.mentioned] == [False, True]

    asyncio.run(scene())


def test_a_reply_names_what_it_answers_and_one_to_the_bot_means_it(harness: Harness) -> None:
    need(harness, "groups", "replies")

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("first", place="group"))
            await desk.got(1)
            ours = await channel.send(piece(harness.address("group"), "the answer"))
            await harness.say(Say("why?", place="group", reply_to=ours))
            reply = (await desk.got(2))[1]
            assert (reply.reply_to, reply.quoted, reply.mentioned) == (ours, "the answer", True)

    asyncio.run(scene())


def test_a_thread_is_a_place_of_its_own(harness: Harness) -> None:
    need(harness, "threads")

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("in the thread", place="thread"))
            (arrival,) = await desk.got(1)
            assert arrival.address == harness.address("thread")
            assert arrival.address.thread
            await channel.send(piece(arrival.address, "there too"))
            assert [one.text for one in await harness.shown("thread")] == ["there too"]
            assert await harness.shown("group") == []

    asyncio.run(scene())


def test_a_file_can_be_fetched_up_to_a_cap(harness: Harness) -> None:
    need(harness, "files")

    async def scene() -> None:
        async with stage(harness) as (_, desk):
            await harness.say(Say("look", file=("notes.txt", b"0123456789")))
            (arrival,) = await desk.got(1)
            (file,) = arrival.files
            assert file.name == "notes.txt"
            assert await file.fetch(10) == b"0123456789"
            with pytest.raises(InputError):
                await file.fetch(9)

    asyncio.run(scene())


def test_a_changed_message_names_the_one_it_replaces(harness: Harness) -> None:
    need(harness, "edited")

    async def scene() -> None:
        async with stage(harness) as (_, desk):
            message = await harness.say(Say("tyop"))
            await desk.got(1)
            await harness.say(Say("typo", replaces=message))
            first, changed = await desk.got(2)
            assert (changed.text, changed.replaces) == ("typo", message)
            assert changed.event != first.event

    asyncio.run(scene())


def test_a_button_says_its_words_for_who_pressed_it(harness: Harness) -> None:
    need(harness, "buttons")

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            await desk.got(1)
            choices = (Choice("Yes", "/approve 7"), Choice("No", "/deny 7"))
            ours = await channel.send(piece(harness.address("direct"), "May I?", choices=choices))
            assert (await harness.shown("direct"))[-1].buttons == ("Yes", "No")
            await harness.say(Say("/approve 7", reply_to=ours, pressed=True))
            pressed = (await desk.got(2))[1]
            assert (pressed.text, pressed.pressed, pressed.sender) == ("/approve 7", True, harness.sender("ann"))
            assert pressed.address == harness.address("direct")

    asyncio.run(scene())


def test_nothing_is_acknowledged_before_it_is_stored(harness: Harness) -> None:
    need(harness, "redelivery")

    async def scene() -> None:
        desk = RecordingDesk()
        desk.gate.clear()
        async with stage(harness, desk):
            await harness.say(Say("keep me"))
            await desk.until(lambda: bool(desk.attempts))
            await asyncio.sleep(0.05)
            assert await harness.waiting() == 1
            desk.gate.set()
            await desk.got(1)
            async with asyncio.timeout(10):
                while await harness.waiting():
                    await asyncio.sleep(0.01)

    asyncio.run(scene())


def test_what_could_not_be_stored_comes_again_under_the_same_event(harness: Harness) -> None:
    need(harness, "redelivery")

    async def scene() -> None:
        async with stage(harness, RecordingDesk(failures=1)) as (_, desk):
            await harness.say(Say("keep me"))
            (arrival,) = await desk.got(1)
            assert desk.attempts == [arrival.event] * 2
            assert any(state.startswith("down") for state in desk.states)

    asyncio.run(scene())


def test_a_killed_receiver_gets_it_from_the_next_connection(harness: Harness) -> None:
    need(harness, "redelivery")

    async def scene() -> None:
        stuck = RecordingDesk()
        stuck.gate.clear()
        async with harness:
            async with running(harness.make(), stuck):
                await harness.say(Say("keep me"))
                await stuck.until(lambda: bool(stuck.attempts))
            desk = RecordingDesk()
            async with running(harness.make(), desk):
                (arrival,) = await desk.got(1)
                assert [arrival.event] == stuck.attempts

    asyncio.run(scene())


def test_what_is_sent_stands_there_in_order(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            ids = [await channel.send(piece(arrival.address, f"part {at}", key=f"k{at}")) for at in range(3)]
            shown = await harness.shown("direct")
            assert [one.text for one in shown] == ["part 0", "part 1", "part 2"]
            assert [one.message for one in shown] == ids

    asyncio.run(scene())


def test_a_message_of_the_full_limit_fits_and_a_longer_one_is_refused(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            limit = channel.traits.limit
            if limit >= ANY or channel.traits.lines:
                return
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            await channel.send(piece(arrival.address, "x" * limit))
            with pytest.raises(RefusedError):
                await channel.send(piece(arrival.address, "x" * (limit + 1), key="k2"))
            assert [len(one.text) for one in await harness.shown("direct")] == [limit]

    asyncio.run(scene())


def test_an_answer_hangs_on_the_message_it_answers(harness: Harness) -> None:
    need(harness, "replies")

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            await channel.send(piece(arrival.address, "yes?", reply_to=arrival.message))
            (shown,) = await harness.shown("direct")
            assert shown.reply_to == arrival.message

    asyncio.run(scene())


def test_our_message_can_be_changed_and_taken_away(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            if not channel.traits.edit_every:
                return
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            message = await channel.send(piece(arrival.address, "thinking"))
            await channel.edit(piece(arrival.address, "done"), message)
            await channel.edit(piece(arrival.address, "done"), message)
            assert [one.text for one in await harness.shown("direct")] == ["done"]
            await channel.remove(arrival.address, message)
            assert await harness.shown("direct") == []
            with pytest.raises(RefusedError):
                await channel.edit(piece(arrival.address, "too late"), message)

    asyncio.run(scene())


def test_typing_is_seen(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            await channel.typing(arrival.address)
            assert await harness.typed("direct") == (1 if channel.traits.typing else 0)

    asyncio.run(scene())


def test_a_reaction_is_put_and_taken_away(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            if not channel.traits.reactions:
                return
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            await channel.react(arrival.address, arrival.message, "👀")
            assert await harness.reaction(arrival.message) == "👀"
            await channel.react(arrival.address, arrival.message, "")
            assert await harness.reaction(arrival.message) == ""

    asyncio.run(scene())


def test_a_file_is_sent_with_its_text(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            if not channel.traits.upload:
                return
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            attachment = await harness.attach("list.txt", b"milk")
            await channel.send(piece(arrival.address, "here", attachments=(attachment,)))
            shown = await harness.shown("direct")
            assert [one.files for one in shown if one.files] == [("list.txt",)]
            assert "here" in [one.text for one in shown]

    asyncio.run(scene())


def test_the_menu_is_taken(harness: Harness) -> None:
    async def scene() -> None:
        async with stage(harness) as (channel, _):
            await channel.offer((MenuEntry("stop", "stop what runs"), MenuEntry("new", "begin anew")))

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("fault", "error", "stands"),
    [
        ("unreachable", NotAcceptedError, 0),
        ("limited", NotAcceptedError, 0),
        ("refused", RefusedError, 0),
        ("lost", UnsureError, 1),
    ],
)
def test_failures_of_a_send_are_told_apart(
    harness: Harness, fault: Fault, error: type[ChannelError], stands: int
) -> None:
    need(harness, fault)

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            await harness.fail(fault)
            with pytest.raises(error) as caught:
                await channel.send(piece(arrival.address, "maybe"))
            if isinstance(caught.value, NotAcceptedError):
                assert caught.value.retry_after == (2.0 if fault == "limited" else 0.0)
            assert len(await harness.shown("direct")) == stands
            await harness.heal()
            await channel.send(piece(arrival.address, "surely", key="k2"))
            assert len(await harness.shown("direct")) == stands + 1

    asyncio.run(scene())


def test_without_a_connection_what_needs_one_is_not_even_tried(harness: Harness) -> None:
    async def scene() -> None:
        async with harness:
            channel = harness.make()
            try:
                if channel.traits.needs_link:
                    with pytest.raises(NotReadyError):
                        await channel.send(piece(harness.address("direct"), "too early"))
            finally:
                await channel.close()

    asyncio.run(scene())


def test_after_a_cut_it_comes_back_and_says_so(harness: Harness) -> None:
    need(harness, "reconnect")

    async def scene() -> None:
        async with stage(harness) as (channel, desk):
            await harness.say(Say("before"))
            await desk.got(1)
            await harness.cut()
            await desk.until(lambda: any(state.startswith("down") for state in desk.states))
            await harness.say(Say("after"))
            await desk.until(lambda: desk.arrivals[-1].text == "after")
            # What was not confirmed before the cut may come again, by the same name.
            assert list({one.event: one.text for one in desk.arrivals}.values()) == ["before", "after"]
            await desk.until(lambda: desk.states[-1] == "up")
            await channel.send(piece(harness.address("direct"), "still here"))

    asyncio.run(scene())


def test_a_cancelled_channel_leaves_nothing_and_closes_twice(harness: Harness) -> None:
    async def scene() -> None:
        async with harness:
            before = asyncio.all_tasks()
            channel = harness.make()
            async with running(channel, RecordingDesk()):
                pass
            await channel.close()
            async with asyncio.timeout(5):
                while asyncio.all_tasks() - before:
                    await asyncio.sleep(0.01)

    asyncio.run(scene())


def test_a_channel_that_was_never_run_closes(harness: Harness) -> None:
    async def scene() -> None:
        async with harness:
            await harness.make().close()

    asyncio.run(scene())


def test_no_secret_is_told(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> list[str]:
        told: list[str] = []
        async with stage(harness) as (channel, desk):
            await harness.say(Say("hello"))
            (arrival,) = await desk.got(1)
            for number, fault in enumerate(("unreachable", "limited", "refused", "lost")):
                if fault in harness.skills:
                    await harness.fail(fault)
                    with pytest.raises(ChannelError) as caught:
                        await channel.send(piece(arrival.address, "maybe", key=f"k{number}"))
                    await harness.heal()
                    told += [repr(caught.value), repr(caught.value.__cause__), caught.value.present()]
            if "reconnect" in harness.skills:
                await harness.cut()
                await desk.until(lambda: any(state.startswith("down") for state in desk.states))
            told += desk.states
        return told

    with caplog.at_level(logging.DEBUG):
        told = asyncio.run(scene())
    everything = "\n".join([*told, caplog.text])
    assert not [secret for secret in harness.secrets if secret in everything]
