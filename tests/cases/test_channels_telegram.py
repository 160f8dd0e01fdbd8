"""Cases of channels on Telegram, as far as the channel itself answers them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from limpet.channels.telegram.polling import Patience
from limpet.errors import NotAcceptedError, UnsureError
from limpet.testing.fakes.telegram import FakeTelegram, Fault, Way
from limpet.testing.fakes.telegram.html import parse
from limpet.types.channel import Arrival, Body, Piece
from limpet.types.envelope import Address
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.telegram import GROUP, TOPIC, bot

ANN = Address("telegram", "main", "11")
TEXT = "From: Pat <pat@example.org> & **bold* _x <b>y\n• head: text\n| a | b |\n| 1 | 2 |"
HTML = (
    "From: Pat &lt;pat@example.org&gt; &amp; **bold* _x &lt;b&gt;y\n• <b>head</b>: text\n"
    "<pre>| a | b |\n| 1 | 2 |</pre>"
)


def on_telegram(folder: Path, scene: Callable[[FakeTelegram, RecordingDesk], Awaitable[None]]) -> FakeTelegram:
    async def whole(telegram: FakeTelegram) -> None:
        async with telegram:
            desk = RecordingDesk()
            async with running(bot(telegram, folder), desk):
                await scene(telegram, desk)

    telegram = FakeTelegram()
    asyncio.run(whole(telegram))
    return telegram


def tried(folder: Path, telegram: FakeTelegram, one: Piece, *, between: Callable[[], Awaitable[None]]) -> list[float]:
    """Send as the gateway does: again after what certainly did not arrive. Gives the waits that were asked for."""
    waits: list[float] = []

    async def whole() -> None:
        async with telegram:
            channel = bot(telegram, folder)
            try:
                while len(waits) < 5:
                    try:
                        await channel.send(one)
                        return
                    except NotAcceptedError as error:
                        waits.append(error.retry_after)
                        await between()
            finally:
                await channel.close()

    asyncio.run(whole())
    return waits


async def nothing() -> None:
    pass


def shown(telegram: FakeTelegram) -> list[str]:
    return [post.text for post in telegram.ours(11)]


def test_c40_a_well_formed_message_is_taken_at_the_first_try(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    assert not tried(tmp_path, telegram, Piece(ANN, Body(HTML, TEXT), "k"), between=nothing)
    assert shown(telegram) == [parse(HTML)[0]] == [TEXT]
    assert len(telegram.asked("sendMessage")) == 1


def test_c40_a_refused_one_is_followed_by_plain_text_once(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    about = "Bad Request: can't parse entities: Unsupported start tag"
    telegram.fault("sendMessage", Fault("answer", status=400, about=about))
    assert not tried(tmp_path, telegram, Piece(ANN, Body(HTML, TEXT), "k"), between=nothing)
    assert shown(telegram) == [TEXT]
    assert len(telegram.asked("sendMessage")) == 2


def test_c42_a_message_without_an_answer_is_unsure_and_sent_once(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("lose"))
    with pytest.raises(UnsureError):
        tried(tmp_path, telegram, piece(ANN, "hello"), between=nothing)
    assert shown(telegram) == ["hello"]
    assert len(telegram.asked("sendMessage")) == 1


def test_c42_too_many_requests_say_how_long_to_wait(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("answer", status=429, about="Too Many Requests: retry after 2", retry_after=2))
    assert tried(tmp_path, telegram, piece(ANN, "hello"), between=nothing) == [2.0]
    assert shown(telegram) == ["hello"]


def test_c42_a_500_of_the_api_itself_was_not_stored(tmp_path: Path) -> None:
    telegram = FakeTelegram()
    telegram.fault("sendMessage", Fault("answer", status=500))
    assert tried(tmp_path, telegram, piece(ANN, "hello"), between=nothing) == [0.0]
    assert shown(telegram) == ["hello"]


def test_c42_a_refused_connection_was_no_message(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            channel = bot(telegram, tmp_path)
            await telegram.shut()
            with pytest.raises(NotAcceptedError):
                await channel.send(piece(ANN, "hello"))
            await telegram.open()
            await channel.send(piece(ANN, "hello"))
            await channel.close()
            assert shown(telegram) == ["hello"]

    asyncio.run(scene())


def test_c44_an_update_has_one_name_however_often_and_to_whom_it_is_given(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            events: list[str] = []
            telegram.say("hello")
            update = telegram.updates[0]
            for _ in range(2):  # twice, and after a restart
                desk = RecordingDesk()
                async with running(bot(telegram, tmp_path), desk):
                    events += [one.event for one in await desk.got(1)]
                telegram.updates = [update]
            assert events == ["100", "100"]

    asyncio.run(scene())


def test_c44_d_what_was_fetched_and_not_stored_is_given_again(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            killed, desk = RecordingDesk(), RecordingDesk()
            killed.gate.clear()
            async with running(bot(telegram, tmp_path), killed):
                telegram.say("hello")
                await killed.until(lambda: killed.attempts == ["100"])
            async with running(bot(telegram, tmp_path), desk):
                assert [one.event for one in await desk.got(1)] == ["100"]

    asyncio.run(scene())


def test_c44_e_the_same_words_twice_are_two_events(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.say("hello")
        telegram.say("hello")
        assert [one.event for one in await desk.got(2)] == ["100", "101"]

    on_telegram(tmp_path, scene)


def test_c46_polling_comes_back_by_itself_and_sending_goes_on(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def scene() -> None:
        async with FakeTelegram() as telegram:
            taken = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
            conflict = Fault("answer", times=2, status=409, about=taken)
            telegram.fault("getUpdates", conflict, Fault("reset"), Fault("hang", seconds=70))
            telegram.say("wait for me")

            async def sleep(seconds: float) -> None:
                pauses.append(seconds)
                await channel.send(piece(ANN, f"meanwhile {len(pauses)}"))

            channel = bot(telegram, tmp_path, patience=Patience(poll=1, answer=0.2, sleep=sleep))
            desk = RecordingDesk()
            async with running(channel, desk):
                (arrival,) = await desk.got(1)
                await desk.until(lambda: desk.states[-1] == "up")
            assert arrival.text == "wait for me"
            assert [state.partition(":")[0] for state in desk.states[:5]] == ["down"] * 4 + ["up"]
            assert "another program" in desk.states[0]
            assert shown(telegram) == [f"meanwhile {at}" for at in range(1, 5)]

    asyncio.run(scene())
    assert sum(sum(pauses[:at]) < 60 for at in range(len(pauses) + 1)) <= 10


def test_c46_a_trouble_that_stays_costs_few_requests() -> None:
    patience, at, polls = Patience(), 0.0, 0
    while at < 60:
        polls += 1
        at += patience.after(polls)
    assert polls <= 10
    assert patience.after(1_000_000) == 60


def test_c46_a_second_consumer_is_told_apart_from_a_webhook(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeTelegram(webhook=True) as telegram:
            channel, desk = bot(telegram, tmp_path), RecordingDesk()
            task = asyncio.create_task(channel.run(desk))
            await desk.until(lambda: bool(desk.states))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await channel.close()
            assert "webhook" in desk.states[0]
            assert "up" not in desk.states

    asyncio.run(scene())


def test_c48_who_is_meant_in_a_group(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        room = telegram.group(GROUP)
        channel = bot(telegram, tmp_path)
        ours = int(await channel.send(piece(Address("telegram", "main", str(GROUP)), "I am here")))
        await channel.close()
        for text in ("hi all", "@helperbot hi", "@helperbot2 hi"):
            telegram.say(text, chat=GROUP, sender=12)
        telegram.say("really?", chat=GROUP, sender=12, way=Way(reply_to=ours))
        telegram.say("@all hi", chat=GROUP, sender=12)
        telegram.say("/stop@helperbot", chat=GROUP, sender=12)
        telegram.say("/stop@helperbot2", chat=GROUP, sender=12)
        arrivals = await desk.got(7)
        assert [one.mentioned for one in arrivals] == [False, True, False, True, False, True, False]
        assert [one.to_all for one in arrivals] == [False] * 4 + [True, False, False]
        assert [arrivals[at].text for at in (1, 5, 6)] == ["hi", "/stop", "/stop@helperbot2"]
        assert {(one.sender, one.sender_name, one.chat_name) for one in arrivals} == {("12", "Bob", room.title)}

    on_telegram(tmp_path, scene)


async def answered(telegram: FakeTelegram, folder: Path, arrival: Arrival) -> dict[str, object]:
    """What a reply to `arrival` asks the Bot API for."""
    channel = bot(telegram, folder)
    await channel.send(piece(arrival.address, "here", reply_to=arrival.message))
    await channel.close()
    return telegram.asked("sendMessage")[-1]


@pytest.mark.parametrize(
    ("way", "thread"),
    [
        pytest.param(Way(thread=TOPIC, topic=True), str(TOPIC), id="topic"),
        pytest.param(Way(thread=TOPIC), "", id="chain_of_replies"),
        pytest.param(Way(), "", id="general"),
    ],
)
def test_c48_a_thread_is_one_only_in_a_topic(tmp_path: Path, way: Way, thread: str) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(GROUP, topics=(TOPIC,))
        telegram.say("@helperbot hi", chat=GROUP, way=way)
        (arrival,) = await desk.got(1)
        assert arrival.address == Address("telegram", "main", str(GROUP), thread)
        asked = await answered(telegram, tmp_path, arrival)
        assert asked.get("message_thread_id") == (TOPIC if thread else None)
        assert [post.text for post in telegram.ours(GROUP, TOPIC if thread else 0)] == ["here"]

    on_telegram(tmp_path, scene)


def test_c48_in_a_topic_not_every_message_answers_the_bot(tmp_path: Path) -> None:
    async def scene(telegram: FakeTelegram, desk: RecordingDesk) -> None:
        telegram.group(GROUP, topics=(TOPIC,))
        telegram.say("hi all", chat=GROUP, way=Way(thread=TOPIC, topic=True))
        (arrival,) = await desk.got(1)
        assert not arrival.mentioned

    on_telegram(tmp_path, scene)
