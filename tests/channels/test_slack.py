"""The channel `slack` beyond the contract of all channels."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limpet.channels.kinds import Means
from limpet.channels.slack.channel import SlackChannel
from limpet.config.channels import SlackSettings
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError, UnsureError
from limpet.testing.clock import FakeClock
from limpet.testing.fakes.slack import FakeSlack, Fault, Posted, Way
from limpet.testing.fakes.slack.rooms import ME
from limpet.types.channel import MenuEntry
from limpet.types.envelope import Address, Choice
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.slack import ROOM, SlackHarness, bot

ANN = Address("slack", "main", "D1")
Scene = Callable[[FakeSlack, SlackChannel, RecordingDesk], Awaitable[None]]


def fake() -> FakeSlack:
    slack = FakeSlack()
    slack.room(ROOM)
    return slack


def play(folder: Path, scene: Scene, *, slack: FakeSlack | None = None, threads: bool = False) -> None:
    """The scene with a bot at work."""

    async def whole(slack: FakeSlack) -> None:
        async with slack:
            desk, channel = RecordingDesk(), bot(slack, folder, threads=threads)
            async with running(channel, desk):
                await scene(slack, channel, desk)
        assert slack.sockets.faults == []

    asyncio.run(whole(slack or fake()))


async def end_of(slack: FakeSlack, folder: Path) -> RefusedError:
    """What a channel says that is refused."""
    async with slack:
        channel = bot(slack, folder)
        with pytest.raises(RefusedError) as caught:
            await channel.run(RecordingDesk())
        await channel.close()
        return caught.value


@pytest.mark.parametrize(("bot_token", "missing"), [("", "bot_token"), ("x", "app_token")])
def test_without_a_token_it_says_where_one_comes_from(tmp_path: Path, bot_token: str, missing: str) -> None:
    means = Means(FakeClock(), str(tmp_path), lambda value: value, str)
    with pytest.raises(ConfigError, match=rf"channels\.slack\.main\.{missing}"):
        SlackChannel("main", SlackSettings(bot_token=bot_token), means)


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
@pytest.mark.parametrize("error", ["invalid_auth", "token_revoked", "account_inactive"])
def test_a_token_that_slack_does_not_take_ends_the_channel(tmp_path: Path, method: str, error: str) -> None:
    slack = fake()
    slack.fault(method, Fault("answer", error=error))
    found = asyncio.run(end_of(slack, tmp_path))
    assert error in str(found)
    assert "xapp-" in found.hint


def test_without_socket_mode_it_says_what_to_turn_on(tmp_path: Path) -> None:
    slack = fake()
    slack.sockets.refuse = "link_disabled"
    assert "Socket Mode" in asyncio.run(end_of(slack, tmp_path)).hint


def test_the_next_connection_stands_before_slack_ends_one(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        await slack.say("one")
        await desk.got(1)
        old = slack.sockets.links[0]
        await slack.sockets.tell("refresh_requested")
        await desk.until(lambda: slack.sockets.opened == 2 and len(slack.sockets.links) == 2)
        assert not old.socket.closed
        await slack.say("two")
        assert [one.text for one in await desk.got(2)] == ["one", "two"]
        assert old.request.transport is not None
        old.request.transport.abort()
        await slack.say("three")
        await desk.got(3)
        assert set(desk.states) == {"up"}

    play(tmp_path, scene)


def test_an_envelope_that_comes_again_is_taken_once(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        desk.gate.clear()
        await slack.say("slow")
        await desk.until(lambda: bool(desk.attempts))
        await slack.sockets.give_again()
        desk.gate.set()
        await slack.say("next")
        assert [one.text for one in await desk.got(2)] == ["slow", "next"]
        await desk.until(lambda: len(slack.sockets.acked) == 2)
        slack.sockets.faults.clear()  # the second acknowledgement of one

    play(tmp_path, scene)


def test_a_mention_that_is_told_twice_is_one_message(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        await slack.say(f"<@{ME}> hi", room=ROOM)
        await slack.say("bye", room=ROOM)
        assert [(one.text, one.mentioned) for one in await desk.got(2)] == [("hi", True), ("bye", False)]
        await desk.until(lambda: len(slack.sockets.acked) == 3)

    play(tmp_path, scene)


def test_what_was_said_while_nothing_was_connected_is_fetched(tmp_path: Path) -> None:
    async def scene() -> None:
        slack = fake()
        async with slack:
            await slack.say("before the first start")
            slack.sockets.waiting.clear()
            desk = RecordingDesk()
            async with running(bot(slack, tmp_path), desk):
                root = await slack.say("one", room=ROOM)
                await slack.say("in a thread", room=ROOM, way=Way(thread=root.ts))
                await desk.got(2)
            for number in range(250):
                await slack.say(f"missed {number}")
            await slack.say("missed in the thread", room=ROOM, way=Way(thread=root.ts))
            await slack.say("missed by a stranger", sender="U2")
            slack.sockets.waiting.clear()  # Slack has given up
            async with running(bot(slack, tmp_path), desk):
                texts = [one.text for one in await desk.got(254)]
            assert [text for text in texts if text[-1].isdecimal()] == [f"missed {number}" for number in range(250)]
            assert {"missed in the thread", "missed by a stranger"} < set(texts)
            assert "before the first start" not in texts
            async with running(bot(slack, tmp_path), desk):
                await slack.say("live")
                await desk.until(lambda: "live" in [one.text for one in desk.arrivals])
            assert len(desk.arrivals) == 255

    asyncio.run(scene())


def test_without_the_scope_it_says_what_could_not_be_fetched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        slack = fake()
        async with slack:
            desk = RecordingDesk()
            async with running(bot(slack, tmp_path), desk):
                await slack.say("one")
                await desk.got(1)
            slack.scopes.discard("channels:history")
            async with running(bot(slack, tmp_path), desk):
                await slack.say("live")
                await desk.got(2)
                await desk.until(lambda: "channels:history" in caplog.text)

    asyncio.run(scene())


def test_fetching_waits_as_long_as_slack_says(tmp_path: Path) -> None:
    async def scene() -> None:
        slack = fake()
        async with slack:
            desk = RecordingDesk()
            async with running(bot(slack, tmp_path), desk):
                await slack.say("one")
                await desk.got(1)
            await slack.say("missed")
            slack.sockets.waiting.clear()
            slack.fault("users.conversations", Fault("answer", status=429, error="ratelimited", retry_after=1))
            async with running(bot(slack, tmp_path), desk):
                await desk.got(2)

    asyncio.run(scene())


def test_bots_notices_and_previews_of_links_say_nothing(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        ours = await channel.send(piece(ANN, "my own"))
        await channel.edit(piece(ANN, "my own!"), ours)
        await slack.say("another bot", room=ROOM, way=Way(bot=True))
        await slack.say("joined", room=ROOM, way=Way(subtype="channel_join"))
        await slack.unfurl(await slack.say("a link"))
        await slack.give({"type": "reaction_added", "user": "U1"})
        await slack.say("last")
        assert [one.text for one in await desk.got(2)] == ["a link", "last"]

    play(tmp_path, scene)


def test_a_thread_of_the_bot_means_it(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        ours = await channel.send(piece(Address("slack", "main", ROOM), "the report"))
        await slack.say("why?", room=ROOM, way=Way(thread=ours))
        (arrival,) = await desk.got(1)
        assert (arrival.mentioned, arrival.parent, arrival.reply_to) == (True, ROOM, ours)
        assert (arrival.address.thread, arrival.space, arrival.chat_name) == (ours, "T1", "general")

    play(tmp_path, scene)


def test_with_threads_each_call_has_a_conversation_of_its_own(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        said = await slack.say(f"<@{ME}> hi", room=ROOM)
        await slack.say("not for it", room=ROOM)
        await slack.say("alone")
        called, beside, alone = await desk.got(3)
        assert [one.address.thread for one in (called, beside, alone)] == [said.ts, "", ""]
        await channel.send(piece(called.address, "hello"))
        assert [post.text for post in slack.ours(ROOM, said.ts)] == ["hello"]

    play(tmp_path, scene, threads=True)


def test_what_slack_writes_for_people_and_links_is_read(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        await slack.say("<!here> a &lt; b, ask <@U2>: <https://x.org|x> <https://y.org> <#C1|general>", room=ROOM)
        (arrival,) = await desk.got(1)
        assert arrival.text == "@here a < b, ask <@U2>: x (https://x.org) https://y.org #general"
        assert (arrival.to_all, arrival.mentioned) == (True, False)

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("command", "text", "read"),
    [
        ("/limpet", "help me", "/help me"),
        ("/limpet", "what is new?", "what is new?"),
        ("/stop", "", "/stop"),
        ("/limpet", "ask <@U2|bob> a &amp; b", "ask <@U2> a & b"),
        ("/limpet", "", "/help"),
    ],
)
def test_slash_commands_are_the_text_they_stand_for(tmp_path: Path, command: str, text: str, read: str) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        await channel.offer((MenuEntry("help", "help"), MenuEntry("stop", "stop")))
        await slack.command(command, text, room=ROOM)
        (arrival,) = await desk.got(1)
        assert (arrival.text, arrival.mentioned, arrival.sender) == (read, True, "U1")

    play(tmp_path, scene)


def test_files_without_the_scope_are_no_login_page(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        slack.scopes.discard("files:read")
        await slack.say("", way=Way(file=("a.txt", b"a")))
        (arrival,) = await desk.got(1)
        with pytest.raises(ChannelError, match="does not give the file"):
            await arrival.files[0].fetch(10)

    play(tmp_path, scene)


def test_the_token_is_shown_to_slack_only(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        slack.rooms.files = "https://files.example.org"
        await slack.say("", way=Way(file=("a.txt", b"a")))
        (arrival,) = await desk.got(1)
        with pytest.raises(ChannelError, match="not kept by Slack"):
            await arrival.files[0].fetch(10)

    play(tmp_path, scene)


def test_a_long_text_with_buttons_stands_in_two_sections(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        text = "line of words\n" * 280
        message = await channel.send(piece(ANN, text, choices=(Choice("Yes" * 40, "/approve 7"),)))
        (post,) = slack.ours("D1")
        assert "".join(post.sections) == text
        assert len(post.sections) == 2
        await channel.edit(piece(ANN, "You said yes."), message)
        assert (post.text, post.sections, post.buttons) == ("You said yes.", (), ())

    play(tmp_path, scene)


def test_several_files_and_buttons_are_one_message(tmp_path: Path) -> None:
    async def scene() -> None:
        harness = SlackHarness(tmp_path)
        async with harness:
            channel = harness.make()
            files = tuple([await harness.attach(f"{at}.txt", b"x" * (at + 1)) for at in range(2)])
            await channel.send(piece(ANN, "choose", attachments=files, choices=(Choice("Yes", "yes"),)))
            await channel.close()
            (post,) = harness.slack.ours("D1")
            assert [name for name, _ in post.files] == ["0.txt", "1.txt"]
            assert (post.text, post.buttons) == ("choose", (("Yes", "yes"),))

    asyncio.run(scene())


def test_a_file_that_was_only_laid_ready_did_not_arrive(tmp_path: Path) -> None:
    async def scene() -> None:
        harness = SlackHarness(tmp_path)
        harness.slack.fault("files.getUploadURLExternal", Fault("lose"))
        async with harness:
            channel = harness.make()
            with pytest.raises(NotAcceptedError):
                await channel.send(piece(ANN, "x", attachments=(await harness.attach("a.txt", b"a"),)))
            await channel.close()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        (Fault("answer", error="not_in_channel"), RefusedError, "not_in_channel"),
        (Fault("answer", error="is_archived"), RefusedError, "is_archived"),
        (Fault("answer", error="msg_too_long"), RefusedError, "msg_too_long"),
        (Fault("answer", error="token_revoked"), RefusedError, "token"),
        (Fault("answer", error="ratelimited", retry_after=3), NotAcceptedError, "later"),
        (Fault("answer", error="fatal_error"), UnsureError, "fatal_error"),
        (Fault("page", status=502), UnsureError, "502"),
        (Fault("page", status=403), NotAcceptedError, "not Slack"),
        (Fault("reset"), UnsureError, "did not answer"),
    ],
)
def test_failures_say_whether_it_arrived(tmp_path: Path, fault: Fault, error: type[ChannelError], words: str) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, _: RecordingDesk) -> None:
        slack.fault("chat.postMessage", fault)
        with pytest.raises(error, match=words) as caught:
            await channel.send(piece(ANN, "x"))
        if isinstance(caught.value, NotAcceptedError):
            assert caught.value.retry_after == fault.retry_after

    play(tmp_path, scene)


def test_a_missing_scope_is_named(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, _: RecordingDesk) -> None:
        slack.scopes.discard("chat:write")
        with pytest.raises(RefusedError, match="chat:write") as caught:
            await channel.send(piece(ANN, "x"))
        assert "install the app again" in caught.value.hint

    play(tmp_path, scene)


def test_one_reaction_takes_the_place_of_another(tmp_path: Path) -> None:
    async def scene(slack: FakeSlack, channel: SlackChannel, desk: RecordingDesk) -> None:
        post: Posted = await slack.say("hi")
        post.reactions = (("U2", "tada"),)
        await channel.react(ANN, post.ts, "👀")
        await channel.react(ANN, post.ts, "✅")
        assert post.reactions == (("U2", "tada"), (ME, "white_check_mark"))
        with pytest.raises(RefusedError, match="no name"):
            await channel.react(ANN, post.ts, "🦑")

    play(tmp_path, scene)


def test_an_event_that_cannot_be_read_does_not_hold_the_others_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(slack: FakeSlack, _: SlackChannel, desk: RecordingDesk) -> None:
        await slack.give({"type": "message", "ts": 7})
        await slack.say("hello")
        assert [one.text for one in await desk.got(1)] == ["hello"]
        await desk.until(lambda: not slack.sockets.waiting)

    play(tmp_path, scene)
    assert "is left out" in caplog.text
