"""Beside the contract: what is Telegram's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limpet.config.channels import TelegramSettings
from limpet.errors import ConfigError, InputError, NotAcceptedError, RefusedError, UnsureError
from limpet.testing.fakes.telegram import FakeTelegram, Fault, Way
from limpet.types.channel import Body, MenuEntry, Piece
from limpet.types.envelope import Address, Attachment, Choice
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.telegram import GROUP, TOPIC, TelegramHarness, bot

ANN = Address("telegram", "main", "11")
Scene = Callable[[FakeTelegram, RecordingDesk], Awaitable[None]]


def play(folder: Path, scene: Scene, *, telegram: FakeTelegram | None = None) -> FakeTelegram:
    """The scene with a bot at work."""

    async def whole(telegram: FakeTelegram) -> None:
        async with telegram:
            desk = RecordingDesk()
            async with running(bot(telegram, folder), desk):
                await scene(telegram, desk)

    telegram = telegram or FakeTelegram()
    asyncio.run(whole(telegram))
    return telegram


def sends(folder: Path, *pieces: Piece, telegram: FakeTelegram | None = None) -> FakeTelegram:
    """A bot that sends, without being run."""

    async def whole(telegram: FakeTelegram) -> None:
        async with telegram:
            channel = bot(telegram, folder)
            try:
                for one in pieces:
                    await channel.send(one)
            finally:
                await channel.close()

    telegram = telegram or FakeTelegram()
    asyncio.run(whole(telegram))
    return telegram


def test_without_a_token_it_says_where_one_comes_from(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    with pytest.raises(ConfigError, match=r"channels\.telegram\.main\.token"):
        bot(telegram, tmp_path, settings=TelegramSettings())


def test_a_token_that_telegram_does_not_know_ends_the_channel(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            channel = bot(telegram, tmp_path)
            telegram.token = "1:other"
            with pytest.raises(RefusedError, match="token"):
                await channel.run(RecordingDesk())
            await channel.close()

    asyncio.run(scene())


def test_an_album_is_several_messages_with_one_name(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.say("two of them", way=Way(file=("a.jpg", b"a"), kind="photo", album="7"))
        telegram.say("", way=Way(file=("b.jpg", b"b"), kind="photo", album="7"))
        first, second = await desk.got(2)
        assert (first.album, second.album) == ("7", "7")
        assert [first.text, second.text] == ["two of them", ""]
        assert await second.files[0].fetch(10) == b"b"
        assert second.files[0].mime == "image/jpeg"

    play(tmp_path, scene)


def test_a_voice_message_says_that_it_is_one(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.say("", way=Way(file=("x", b"OggS"), kind="voice"))
        (arrival,) = await desk.got(1)
        assert (arrival.files[0].voice, arrival.files[0].mime) == (True, "audio/ogg")

    play(tmp_path, scene)


def test_a_file_beyond_what_bots_are_given_says_so(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.say("", way=Way(file=("film", bytes((20 << 20) + 1))))
        (arrival,) = await desk.got(1)
        with pytest.raises(InputError, match="20 MB"):
            await arrival.files[0].fetch(1 << 30)

    play(tmp_path, scene)


def test_who_speaks_for_a_group_is_that_group(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(GROUP)
        telegram.say("/stop@helperbot", chat=GROUP, way=Way(as_chat=True))
        (arrival,) = await desk.got(1)
        assert (arrival.sender, arrival.sender_name) == (str(GROUP), "Friends")

    play(tmp_path, scene)


def test_the_name_after_an_emoji_is_found_by_units(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(GROUP)
        telegram.say("🐚🐚 @HelperBot hi", chat=GROUP)
        (arrival,) = await desk.got(1)
        assert arrival.mentioned
        assert arrival.text == "🐚🐚 @HelperBot hi"

    play(tmp_path, scene)


def test_a_text_mention_of_the_bot_means_it_and_one_of_another_does_not(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(GROUP)
        telegram.say("Helper do this", chat=GROUP, way=Way(person=7_000_000_001))
        telegram.say("Bob do this", chat=GROUP, way=Way(person=12))
        assert [(one.mentioned, one.text) for one in await desk.got(2)] == [(True, "do this"), (False, "Bob do this")]

    play(tmp_path, scene)


def test_a_group_that_became_a_supergroup_keeps_its_id_for_us(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(-5, kind="group")
        telegram.migrate(-5, -1005)
        telegram.say("still here?", chat=-1005)
        (arrival,) = await desk.got(1)
        assert arrival.address.chat == "-5"

    telegram = play(tmp_path, scene)
    sends(tmp_path, piece(Address("telegram", "main", "-5"), "yes"), telegram=telegram)  # after a restart
    assert [post.text for post in telegram.ours(-1005)] == ["yes"]


def test_a_send_follows_a_group_that_has_moved(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.group(-5, kind="group")
    telegram.migrate(-5, -1005)
    there = Address("telegram", "main", "-5")
    sends(tmp_path, piece(there, "one"), piece(there, "two", key="k2"), telegram=telegram)
    assert [post.text for post in telegram.ours(-1005)] == ["one", "two"]
    assert [call["chat_id"] for call in telegram.asked("sendMessage")] == [-5, -1005, -1005]


def test_what_telegram_cannot_read_goes_out_as_plain_text_once(tmp_path: Path) -> None:
    telegram = sends(tmp_path, Piece(ANN, Body("<b>a < b", "a < b"), "k"))
    assert [post.text for post in telegram.ours(11)] == ["a < b"]
    assert len(telegram.asked("sendMessage")) == 2


def test_plain_text_that_is_refused_too_is_not_tried_a_third_time(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("answer", times=5, status=400, about="Bad Request: can't parse entities: x"))
    with pytest.raises(RefusedError):
        sends(tmp_path, piece(ANN, "x"), telegram=telegram)
    assert len(telegram.asked("sendMessage")) == 2


def test_links_get_no_preview_and_notices_do_not_ring(tmp_path: Path) -> None:
    telegram = sends(tmp_path, Piece(ANN, Body("https://example.org", ""), "k", quiet=True))
    assert [(post.preview, post.quiet) for post in telegram.ours(11)] == [(False, True)]


def test_a_blocked_bot_is_refused(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.chats.rooms[11].blocked = True
    with pytest.raises(RefusedError, match="blocked by the user"):
        sends(tmp_path, piece(ANN, "x"), telegram=telegram)


def test_a_portal_that_answers_in_its_place_took_nothing(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("page", status=200))
    with pytest.raises(NotAcceptedError, match="no Bot API"):
        sends(tmp_path, piece(ANN, "x"), telegram=telegram)


def test_an_upload_that_is_too_large_for_the_server_never_arrives(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("page", status=413))
    with pytest.raises(RefusedError, match="too large"):
        sends(tmp_path, piece(ANN, "x"), telegram=telegram)


@pytest.mark.parametrize(("resend", "error"), [(False, UnsureError), (True, NotAcceptedError)])
def test_a_gateways_page_leaves_open_whether_it_arrived(tmp_path: Path, resend: bool, error: type[Exception]) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            telegram.fault("sendMessage", Fault("page", status=502))
            settings = TelegramSettings(token="x", base_url=telegram.base_url, resend_on_5xx=resend)
            channel = bot(telegram, tmp_path, settings=settings)
            assert channel.traits.lost_on_5xx is not resend
            with pytest.raises(error):
                await channel.send(piece(ANN, "x"))
            await channel.close()

    asyncio.run(scene())


def test_several_files_are_an_album_with_one_caption(tmp_path: Path) -> None:
    async def scene() -> None:
        harness = TelegramHarness(tmp_path)
        async with harness:
            channel = harness.make()
            files = [await harness.attach(f"{at}.jpg", b"jpeg%d" % at) for at in range(2)]
            photos = tuple(Attachment(one.blob, one.name, "image/jpeg", one.size) for one in files)
            await channel.send(piece(ANN, "both", attachments=photos))
            await channel.close()
            posts = harness.telegram.ours(11)
            assert [(post.kind, post.text) for post in posts] == [("photo", "both"), ("photo", "")]

    asyncio.run(scene())


def test_a_picture_that_telegram_cannot_show_goes_as_a_file(tmp_path: Path) -> None:
    async def scene() -> None:
        harness = TelegramHarness(tmp_path)
        harness.telegram.fault("sendPhoto", Fault("answer", status=400, about="Bad Request: PHOTO_INVALID_DIMENSIONS"))
        async with harness:
            channel = harness.make()
            file = await harness.attach("long.png", b"png")
            photo = Attachment(file.blob, file.name, "image/png", file.size)
            message = await channel.send(piece(ANN, "see", attachments=(photo,)))
            await channel.edit(piece(ANN, "seen"), message)
            await channel.close()
            assert [(post.kind, post.text) for post in harness.telegram.ours(11)] == [("document", "seen")]

    asyncio.run(scene())


def test_buttons_go_away_with_the_words_that_asked(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        channel = bot(telegram, tmp_path)
        message = await channel.send(piece(ANN, "May I?", choices=(Choice("Yes", "/approve 7"),)))
        telegram.press(telegram.ours(11)[0], "/approve 7")
        await desk.got(1)
        await channel.edit(piece(ANN, "You said yes."), message)
        assert telegram.ours(11)[0].keyboard == ()
        await desk.until(lambda: bool(telegram.asked("answerCallbackQuery")))
        await channel.close()

    assert not play(tmp_path, scene).refusals


def test_a_command_comes_back_under_its_own_name(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            channel, desk = bot(telegram, tmp_path), RecordingDesk()
            await channel.offer((MenuEntry("dry-run", "try it"),))
            telegram.group(GROUP)
            async with running(channel, desk):
                telegram.say("/dry_run@helperbot now", chat=GROUP)
                (arrival,) = await desk.got(1)
                assert (arrival.text, arrival.mentioned) == ("/dry-run now", True)

    asyncio.run(scene())


def test_an_update_that_cannot_be_read_does_not_hold_the_others_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.give({"message": {"message_id": "seven"}})
        telegram.say("hello")
        assert [one.text for one in await desk.got(1)] == ["hello"]

    play(tmp_path, scene)
    assert "is left out" in caplog.text


def test_a_bots_own_kind_is_not_listened_to(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        robot = {"id": 99, "is_bot": True, "first_name": "Robot"}
        chat = {"id": GROUP, "type": "supergroup"}
        telegram.give({"message": {"message_id": 1, "date": 1, "chat": chat, "from": robot, "text": "@helperbot hi"}})
        telegram.say("hello")
        assert [one.text for one in await desk.got(1)] == ["hello"]

    play(tmp_path, scene)


def test_typing_and_replies_stay_in_their_topic(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        room = telegram.group(GROUP, topics=(TOPIC,))
        said = telegram.say("@helperbot hi", chat=GROUP, way=Way(thread=TOPIC, topic=True))
        (arrival,) = await desk.got(1)
        assert (arrival.quoted, arrival.reply_to, arrival.parent) == ("", "", str(GROUP))
        channel = bot(telegram, tmp_path)
        await channel.typing(arrival.address)
        message = await channel.send(piece(arrival.address, "hello", reply_to=arrival.message))
        await channel.edit(piece(arrival.address, "hello!"), message)
        await channel.close()
        assert room.typed == [TOPIC]
        assert [(post.text, post.reply_to) for post in telegram.ours(GROUP, TOPIC)] == [("hello!", said.id)]

    play(tmp_path, scene)
