"""The channel `discord` beyond the contract of all channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limpet.channels.discord.channel import DiscordChannel
from limpet.channels.kinds import Means
from limpet.config.channels import DiscordSettings
from limpet.errors import ChannelError, ConfigError, InputError, NotAcceptedError, RefusedError, UnsureError
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.discord import FakeDiscord, Fault, Way
from limpet.testing.fakes.discord.rooms import ME, ROLE
from limpet.types.channel import MenuEntry
from limpet.types.envelope import Address, Choice
from tests.channel.discord import ROOM, THREAD, DiscordHarness, bot
from tests.channel.harness import RecordingDesk, piece, running

ANN = Address("discord", "main", "91")
SEND = "POST /channels/91/messages"
Scene = Callable[[FakeDiscord, DiscordChannel, RecordingDesk], Awaitable[None]]


def fake() -> FakeDiscord:
    discord = FakeDiscord()
    discord.room(ROOM)
    discord.room(THREAD, name="plans", parent=ROOM)
    discord.rooms.roles["12"] = ("7",)
    return discord


def play(folder: Path, scene: Scene, *, discord: FakeDiscord | None = None, clock: FakeClock | None = None) -> None:
    """The scene with a bot at work."""

    async def whole(discord: FakeDiscord) -> None:
        async with discord:
            desk, channel = RecordingDesk(), bot(discord, folder, clock=clock)
            async with running(channel, desk):
                await scene(discord, channel, desk)

    asyncio.run(whole(discord or fake()))


def sends(folder: Path, *faults: Fault, times: int = 1, clock: FakeClock | None = None) -> FakeDiscord:
    """A bot that sends one message to Ann, so many times, without being run."""

    async def whole(discord: FakeDiscord) -> None:
        discord.fault(SEND, *faults)
        async with discord:
            channel = bot(discord, folder, clock=clock)
            try:
                for _ in range(times):
                    await channel.send(piece(ANN, "x"))
            finally:
                await channel.close()

    discord = fake()
    asyncio.run(whole(discord))
    return discord


def test_without_a_token_it_says_where_one_comes_from(tmp_path: Path) -> None:
    means = Means(FakeClock(), str(tmp_path), lambda value: value, str)
    with pytest.raises(ConfigError, match=r"channels\.discord\.main\.token"):
        DiscordChannel("main", DiscordSettings(), means)


def test_a_token_that_discord_does_not_know_ends_the_channel(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeDiscord() as discord:
            channel = bot(discord, tmp_path)
            discord.token = "another"
            with pytest.raises(RefusedError, match="token"):
                await channel.run(RecordingDesk())
            await channel.close()

    asyncio.run(scene())


def test_without_the_intent_it_says_what_to_turn_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeDiscord(privileged=False) as discord:
            channel = bot(discord, tmp_path)
            with pytest.raises(RefusedError, match="may not read messages") as caught:
                await channel.run(RecordingDesk())
            await channel.close()
            assert "Message Content Intent" in caught.value.hint

    asyncio.run(scene())


def test_no_more_sessions_today_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeDiscord() as discord:
            discord.starts = 0
            channel = bot(discord, tmp_path)
            with pytest.raises(NotAcceptedError, match="today"):
                await channel.run(RecordingDesk())
            await channel.close()
            assert discord.gateway.begun == []

    asyncio.run(scene())


def test_what_was_said_before_the_first_start_is_not_taken(tmp_path: Path) -> None:
    async def scene() -> None:
        discord = fake()
        async with discord:
            await discord.say("long ago")
            await discord.say("long ago", place=ROOM)
            desk = RecordingDesk()
            async with running(bot(discord, tmp_path), desk):
                await discord.say("now")
                assert [one.text for one in await desk.got(1)] == ["now"]

    asyncio.run(scene())


def test_a_new_process_takes_the_session_up(tmp_path: Path) -> None:
    async def scene() -> None:
        discord = fake()
        async with discord:
            desk = RecordingDesk()
            async with running(bot(discord, tmp_path), desk):
                await discord.say("one")
                await desk.got(1)
            message = await discord.say("two, while it was down")
            await discord.change(message, "2")
            async with running(bot(discord, tmp_path), desk):
                assert [one.text for one in await desk.got(3)] == ["one", "two, while it was down", "2"]
            assert len(discord.gateway.begun) == 1

    asyncio.run(scene())


def test_when_the_session_is_over_what_was_missed_is_fetched(tmp_path: Path) -> None:
    async def scene() -> None:
        discord = fake()
        async with discord:
            desk = RecordingDesk()
            async with running(bot(discord, tmp_path), desk):
                await discord.say("one")
                await desk.got(1)
            discord.gateway.sessions.clear()
            for number in range(120):
                await discord.say(f"missed {number}")
            await discord.say("in a room that was silent", sender="12", place=ROOM)
            async with running(bot(discord, tmp_path), desk):
                await discord.say("live")
                texts = [one.text for one in await desk.got(123)]
        assert texts[:121] == ["one", *(f"missed {number}" for number in range(120))]
        assert set(texts[121:]) == {"in a room that was silent", "live"}
        silent = desk.arrivals[texts.index("in a room that was silent")]
        assert (silent.space, silent.roles) == ("500", ("7",))
        assert len({one.event for one in desk.arrivals}) == 123

    asyncio.run(scene())


def test_a_chat_that_may_no_longer_be_read_holds_nothing_up(tmp_path: Path) -> None:
    async def scene() -> None:
        discord = fake()
        async with discord:
            desk = RecordingDesk()
            async with running(bot(discord, tmp_path), desk):
                await discord.say("here", place=ROOM)
                await desk.got(1)
            discord.gateway.sessions.clear()
            discord.rooms.rooms[ROOM].closed = True
            limited = Fault("answer", status=429, about="limited", retry_after=0.01)
            discord.fault(f"GET /channels/{ROOM}/messages", limited)
            async with running(bot(discord, tmp_path), desk):
                await discord.say("live")
                await desk.got(2)

    asyncio.run(scene())


@pytest.mark.parametrize("frame", [{"op": 7, "d": None}, {"op": 9, "d": True}, {"op": 9, "d": False}])
def test_discord_may_ask_for_a_new_connection_or_session(tmp_path: Path, frame: dict[str, object]) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.say("before")
        await desk.got(1)
        await discord.gateway.send(frame)
        await desk.until(lambda: desk.states[-1].startswith("down") or desk.states.count("up") > 2)
        await discord.say("after")
        assert [one.text for one in await desk.got(2)] == ["before", "after"]
        assert len(discord.gateway.begun) == (1 if frame["op"] == 7 or frame["d"] else 2)

    play(tmp_path, scene)


def test_a_line_that_is_dead_is_noticed_by_its_heartbeat(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        discord.gateway.deaf = True
        await desk.until(lambda: any("no longer answers" in state for state in desk.states))

    play(tmp_path, scene)


def test_a_session_that_timed_out_is_begun_anew(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.gateway.cut(4009)
        await desk.until(lambda: len(discord.gateway.begun) == 2)

    play(tmp_path, scene)


def test_bots_notices_and_previews_of_links_say_nothing(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.say("my own", sender=ME, place=ROOM)
        await discord.say("a hook", place=ROOM, way=Way(webhook=True))
        await discord.say("joined", place=ROOM, way=Way(type=7))
        await discord.unfurl(await discord.say("a link"))
        await discord.say("last")
        assert [one.text for one in await desk.got(2)] == ["a link", "last"]

    play(tmp_path, scene)


def test_who_is_meant_goes_by_ids(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        said = ["helper, hi", "@helper hi", f"<@!{ME}>, hi", "<@12> hi", "hi all"]
        for text in said:
            await discord.say(text, place=ROOM)
        await discord.say(f"<@&{ROLE}> hi", place=ROOM, way=Way(roles=(ROLE,)))
        await discord.say("<@&7> hi", place=ROOM, way=Way(roles=("7",)))
        await discord.say("@everyone hi", place=ROOM, way=Way(everyone=True))
        arrivals = await desk.got(8)
        assert [one.mentioned for one in arrivals] == [False, False, True, False, False, True, False, False]
        assert [one.to_all for one in arrivals] == [False] * 7 + [True]
        assert [arrivals[2].text, arrivals[5].text] == ["hi", "hi"]

    play(tmp_path, scene)


def test_a_message_says_where_it_belongs(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.say("hi", sender="12", place=THREAD)
        (arrival,) = await desk.got(1)
        assert arrival.address == Address("discord", "main", ROOM, THREAD)
        assert (arrival.space, arrival.parent, arrival.roles) == ("500", ROOM, ("7",))
        assert (arrival.chat_name, arrival.sender_name) == ("plans", "Bob")
        assert arrival.sent > 1_700_000_000_000

    play(tmp_path, scene)


def test_forwarded_and_spoken_messages_are_read(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.say("", way=Way(forwarded="what she wrote"))
        await discord.say("", way=Way(file=("voice.ogg", b"OggS"), voice=True))
        forwarded, spoken = await desk.got(2)
        assert (forwarded.text, forwarded.reply_to) == ("what she wrote", "")
        assert (spoken.files[0].voice, spoken.files[0].mime) == (True, "audio/ogg")
        with pytest.raises(InputError):
            await spoken.files[0].fetch(3)

    play(tmp_path, scene)


def test_a_slash_command_is_the_text_it_stands_for(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, desk: RecordingDesk) -> None:
        await channel.offer((MenuEntry("model", "choose a model"), MenuEntry("stop", "stop")))
        await discord.command("model", "fast one", place=ROOM)
        await discord.command("stop")
        model, stop = await desk.got(2)
        assert (model.text, model.mentioned, model.address.chat) == ("/model fast one", True, ROOM)
        assert (stop.text, stop.in_group, stop.sender) == ("/stop", False, "11")
        await desk.until(lambda: len(discord.routes.answered) == 2)
        assert not discord.refusals

    play(tmp_path, scene)


def test_a_press_is_answered_after_it_is_stored_also_when_that_was_slow(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, desk: RecordingDesk) -> None:
        await channel.send(piece(ANN, "May I?", choices=(Choice("Yes", "/approve 7"),)))
        desk.gate.clear()
        await discord.press(discord.ours("91")[0], "/approve 7")
        await desk.until(lambda: bool(desk.attempts))
        assert not discord.routes.answered
        discord.ahead = 4.0
        desk.gate.set()
        (pressed,) = await desk.got(1)
        assert pressed.pressed
        await desk.until(lambda: discord.refusals == ["Unknown interaction"])

    play(tmp_path, scene)


def test_an_answer_that_was_lost_is_asked_for_again_and_stands_once(tmp_path: Path) -> None:
    discord = sends(tmp_path, Fault("lose"))
    assert [post.text for post in discord.ours("91")] == ["x"]
    assert discord.calls.count(("POST", "/channels/91/messages")) == 2


def test_after_a_kill_the_same_message_stands_once(tmp_path: Path) -> None:
    async def scene() -> None:
        discord, clock = fake(), FakeClock()
        discord.fault(SEND, Fault("lose", times=2))
        async with discord:
            for _ in range(2):  # the second is that of a new process
                channel = bot(discord, tmp_path, clock=clock)
                try:
                    message = await channel.send(piece(ANN, "x"))
                    assert message == discord.ours("91")[0].id
                except UnsureError:
                    pass
                await channel.close()
        assert len(discord.ours("91")) == 1

    asyncio.run(scene())


def test_a_try_of_long_ago_is_not_repeated(tmp_path: Path) -> None:
    async def scene() -> None:
        discord, clock = fake(), FakeClock()
        discord.fault(SEND, Fault("lose", times=2))
        async with discord:
            channel = bot(discord, tmp_path, clock=clock)
            with pytest.raises(UnsureError):
                await channel.send(piece(ANN, "x"))
            clock.advance(300.0)
            with pytest.raises(UnsureError, match="earlier"):
                await channel.send(piece(ANN, "x"))
            await channel.send(piece(ANN, "y", key="k2"))
            await channel.close()
        assert [post.text for post in discord.ours("91")] == ["x", "y"]

    asyncio.run(scene())


def test_a_global_limit_holds_everything(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, _: RecordingDesk) -> None:
        fault = Fault("answer", status=429, about="The resource is being rate limited.", retry_after=5, everywhere=True)
        discord.fault("POST /channels/91/typing", fault)
        with pytest.raises(NotAcceptedError):
            await channel.typing(ANN)
        with pytest.raises(NotAcceptedError) as caught:
            await channel.send(piece(ANN, "x"))
        assert caught.value.retry_after == pytest.approx(5.0)
        assert ("POST", "/channels/91/messages") not in discord.calls

    play(tmp_path, scene, clock=FakeClock())


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault("page", status=403), NotAcceptedError, "not Discord"),
        (Fault("page", status=413), RefusedError, "too large"),
        (Fault("page", status=429), NotAcceptedError, "fewer"),
        (Fault("page", times=2, status=502), UnsureError, "502"),
        (Fault("reset", times=2), UnsureError, "did not answer"),
        (Fault("answer", status=403, code=50007, about="Cannot send messages to this user"), RefusedError, "Cannot"),
    ],
)
def test_failures_say_whether_it_arrived(tmp_path: Path, fault: Fault, error: type[ChannelError], words: str) -> None:
    with pytest.raises(error, match=words):
        sends(tmp_path, fault)


def test_a_reply_to_what_is_gone_is_sent_all_the_same(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, _: RecordingDesk) -> None:
        await channel.send(piece(ANN, "yes", reply_to="123"))
        assert [post.text for post in discord.ours("91")] == ["yes"]
        with pytest.raises(RefusedError, match="no id"):
            await channel.send(piece(ANN, "yes", reply_to="../x"))

    play(tmp_path, scene)


def test_one_reaction_takes_the_place_of_another(tmp_path: Path) -> None:
    async def scene(discord: FakeDiscord, channel: DiscordChannel, desk: RecordingDesk) -> None:
        post = await discord.say("hi")
        post.reactions = (("11", "🎉"),)
        await channel.react(ANN, post.id, "👀")
        await channel.react(ANN, post.id, "✅")
        assert post.reactions == (("11", "🎉"), (ME, "✅"))

    play(tmp_path, scene)


def test_more_files_than_a_message_holds_are_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        harness = DiscordHarness(tmp_path)
        async with harness:
            channel = harness.make()
            file = await harness.attach("a.txt", b"a")
            with pytest.raises(RefusedError, match="at most 10"):
                await channel.send(piece(ANN, "x", attachments=(file,) * 11))
            await channel.close()

    asyncio.run(scene())


def test_an_event_that_cannot_be_read_does_not_hold_the_others_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(discord: FakeDiscord, _: DiscordChannel, desk: RecordingDesk) -> None:
        await discord.gateway.tell("MESSAGE_CREATE", {"id": 7}, alone=True)
        await discord.say("hello")
        assert [one.text for one in await desk.got(1)] == ["hello"]

    play(tmp_path, scene)
    assert "is left out" in caplog.text
