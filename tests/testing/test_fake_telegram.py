"""The fake Bot API is as strict as the real one."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.testing.clock import FakeClock
from limpet.testing.fakes.shape import Refused
from limpet.testing.fakes.telegram import FakeTelegram
from limpet.testing.fakes.telegram.html import Span, found, parse, units
from limpet.testing.fakes.telegram.rates import Rates


async def ask(telegram: FakeTelegram, method: str, **params: object) -> dict[str, object]:
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{telegram.base_url}/bot{telegram.token}/{method}", json=params) as response:
            answer = await response.json()
            assert response.status == answer.get("error_code", 200)
            return answer


@pytest.mark.parametrize(
    ("params", "about"),
    [
        ({"chat_id": 99, "text": "x"}, "chat not found"),
        ({"text": "x"}, "chat not found"),
        ({"chat_id": 11, "text": ""}, "message text is empty"),
        ({"chat_id": 11, "text": " \n"}, "message text is empty"),
        ({"chat_id": 11, "text": "😀" * 2049}, "message is too long"),
        ({"chat_id": 11, "text": "<b>x", "parse_mode": "HTML"}, "can't parse entities"),
        ({"chat_id": 11, "text": "x", "parse_mode": "MarkdownV3"}, "unsupported parse_mode"),
        ({"chat_id": 11, "text": "x", "message_thread_id": 5}, "message thread not found"),
        ({"chat_id": 11, "text": "x", "reply_parameters": {"message_id": 77}}, "message to be replied not found"),
        (
            {
                "chat_id": 11,
                "text": "x",
                "reply_markup": {"inline_keyboard": [[{"text": "y", "callback_data": "z" * 65}]]},
            },
            "BUTTON_DATA_INVALID",
        ),
    ],
)
def test_a_message_that_breaks_a_rule_is_refused(params: dict[str, object], about: str) -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            answer = await ask(telegram, "sendMessage", **params)
            assert answer["error_code"] == 400
            assert about in str(answer["description"])
            assert telegram.ours(11) == []

    asyncio.run(scene())


def test_a_wrong_token_is_refused() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            telegram.base_url += "/bot1:x/getMe?"
            assert (await ask(telegram, "getMe"))["error_code"] == 401

    asyncio.run(scene())


def test_the_length_counts_after_the_markup_was_read() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            text = "<b>" + "&lt;" * 4096 + "</b>"
            assert (await ask(telegram, "sendMessage", chat_id=11, text=text, parse_mode="HTML"))["ok"]

    asyncio.run(scene())


def test_an_update_is_given_until_a_larger_offset_is_asked_for() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            telegram.say("one")
            telegram.say("two")
            for offset, count in ((0, 2), (100, 2), (101, 1), (0, 1), (102, 0), (0, 0)):
                answer = await ask(telegram, "getUpdates", offset=offset)
                assert isinstance(answer["result"], list)
                assert len(answer["result"]) == count

    asyncio.run(scene())


def test_a_second_poll_ends_the_first() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            first = asyncio.create_task(ask(telegram, "getUpdates", timeout=10))
            while not telegram.asked("getUpdates"):
                await asyncio.sleep(0.005)
            second = asyncio.create_task(ask(telegram, "getUpdates", timeout=10))
            assert (await first)["error_code"] == 409
            telegram.say("hello")
            assert (await second)["ok"]

    asyncio.run(scene())


def test_an_edit_that_changes_nothing_is_refused() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            await ask(telegram, "sendMessage", chat_id=11, text="x")
            answer = await ask(telegram, "editMessageText", chat_id=11, message_id=1, text="x")
            assert "message is not modified" in str(answer["description"])

    asyncio.run(scene())


def test_others_messages_cannot_be_edited() -> None:
    async def scene() -> None:
        async with FakeTelegram() as telegram:
            post = telegram.say("mine")
            answer = await ask(telegram, "editMessageText", chat_id=11, message_id=post.id, text="x")
            assert answer["error_code"] == 400

    asyncio.run(scene())


def test_too_many_messages_are_told_when_to_come_back() -> None:
    async def scene() -> None:
        clock = FakeClock()
        async with FakeTelegram(rates=Rates(clock)) as telegram:
            answers = [await ask(telegram, "sendMessage", chat_id=11, text="x") for _ in range(4)]
            assert [answer.get("error_code", 200) for answer in answers] == [200, 200, 200, 429]
            assert answers[3]["parameters"] == {"retry_after": 3}
            clock.advance(3)
            assert (await ask(telegram, "sendMessage", chat_id=11, text="x"))["ok"]

    asyncio.run(scene())


def test_a_group_takes_twenty_messages_a_minute() -> None:
    clock = FakeClock()
    rates = Rates(clock)
    for _ in range(20):
        rates.check(-1)
        clock.advance(1)
    with pytest.raises(Refused) as caught:
        rates.check(-1)
    assert caught.value.code == "40"


def test_thirty_messages_a_second_go_to_all_chats_together() -> None:
    rates = Rates(FakeClock())
    for chat in range(30):
        rates.check(chat)
    with pytest.raises(Refused):
        rates.check(31)


@pytest.mark.parametrize(
    "html", ["<b>x", "x</b>", "<b><i>x</b></i>", "a < b", "<div>x</div>", "<span>x</span>", "<", "<b x=1>y</b>"]
)
def test_markup_that_telegram_does_not_read(html: str) -> None:
    with pytest.raises(Refused, match="can't parse entities"):
        parse(html)


def test_markup_becomes_text_and_entities() -> None:
    text, spans = parse('😀<b>a</b> &amp; <a href="https://example.org">b</a> &nbsp; &#60;')
    assert text == "😀a & b &nbsp; <"
    assert spans == (Span("b", 2, 1), Span("a", 6, 1))


@given(st.text())
def test_escaped_text_is_read_as_itself(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert parse(escaped) == (text, ())


def test_mentions_and_commands_are_found_in_units() -> None:
    assert found("😀 @helperbot /stop@helperbot a@b.example") == (
        Span("mention", 3, 10),
        Span("bot_command", 14, 15),
    )


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refused):
        units("\ud83d")
