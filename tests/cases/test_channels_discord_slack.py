"""Cases of channels on Discord and Slack, as far as the channels themselves answer them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from limpet.channels.text.render import render
from limpet.errors import NotAcceptedError
from limpet.testing.fakes.discord import FakeDiscord, Fault
from limpet.testing.fakes.discord.rooms import ME as DISCORD_BOT
from limpet.testing.fakes.slack import FakeSlack
from limpet.testing.fakes.slack.rooms import ME as SLACK_BOT
from limpet.types.channel import Piece
from limpet.types.envelope import Address
from tests.channel import discord, slack
from tests.channel.harness import RecordingDesk, running


def test_c41_f_a_long_answer_stands_on_discord_in_parts_and_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with FakeDiscord() as fake:
            limited = Fault("answer", status=429, about="You are being rate limited.", retry_after=0.5)
            channel, ann = discord.bot(fake, tmp_path), Address("discord", "main", "91")
            text = "\n\n".join(f"Paragraph {number}. It has *two* sentences." for number in range(116))
            for number, body in enumerate(render(text, channel.traits)):
                fake.fault("POST /channels/91/messages", limited)
                with pytest.raises(NotAcceptedError):
                    await channel.send(Piece(ann, body, f"k{number}"))
                await channel.send(Piece(ann, body, f"k{number}"))
            await channel.close()
            posts = fake.ours("91")
            assert len(posts) >= 3
            assert all(len(post.text) <= 2_000 for post in posts)
            found = re.findall(r"Paragraph (\d+)", "\n".join(post.text for post in posts))
            assert [int(number) for number in found] == list(range(116))

    asyncio.run(scene())


def test_c44_d_what_discord_gave_and_was_not_stored_is_given_again(tmp_path: Path) -> None:
    async def scene() -> None:
        stuck, desk = RecordingDesk(), RecordingDesk()
        async with FakeDiscord() as fake:
            async with running(discord.bot(fake, tmp_path), stuck):
                await fake.say("stored")
                await stuck.got(1)
                stuck.gate.clear()
                await fake.say("keep me")
                await stuck.until(lambda: len(stuck.attempts) == 2)
            fake.gateway.sessions.clear()  # the session is over: it has to be fetched
            async with running(discord.bot(fake, tmp_path), desk):
                assert [one.event for one in await desk.got(1)] == stuck.attempts[1:]

    asyncio.run(scene())


def test_c44_an_event_of_slack_has_one_name_whichever_way_it_comes(tmp_path: Path) -> None:
    async def scene() -> None:
        stuck, desk = RecordingDesk(), RecordingDesk()
        stuck.gate.clear()
        async with FakeSlack() as fake:
            async with running(slack.bot(fake, tmp_path), stuck):
                await fake.say("keep me")
                await stuck.until(lambda: bool(stuck.attempts))
            fake.sockets.waiting.clear()  # Slack has given up: it has to be fetched
            async with running(slack.bot(fake, tmp_path), desk):
                assert [one.event for one in await desk.got(1)] == stuck.attempts

    asyncio.run(scene())


def test_c44_e_the_same_words_twice_are_two_events(tmp_path: Path) -> None:
    async def scene() -> None:
        desk = RecordingDesk()
        async with FakeSlack() as fake, running(slack.bot(fake, tmp_path), desk):
            await fake.say("again")
            await fake.say("again")
            assert len({one.event for one in await desk.got(2)}) == 2

    asyncio.run(scene())


def test_c48_who_is_meant_on_discord(tmp_path: Path) -> None:
    async def scene() -> None:
        desk, fake = RecordingDesk(), FakeDiscord()
        fake.room("600")
        said = ["hi all", f"<@{DISCORD_BOT}> hi", f"<@{DISCORD_BOT}2> hi", "@helper hi", "@all hi"]
        async with fake, running(discord.bot(fake, tmp_path), desk):
            for text in said:
                await fake.say(text, place="600")
            arrivals = await desk.got(5)
        assert [one.mentioned for one in arrivals] == [False, True, False, False, False]
        assert {one.sender_name for one in arrivals} == {"Ann"}

    asyncio.run(scene())


def test_c48_who_is_meant_on_slack(tmp_path: Path) -> None:
    async def scene() -> None:
        desk, fake = RecordingDesk(), FakeSlack()
        fake.room("C1")
        said = ["hi all", f"<@{SLACK_BOT}> hi", f"<@{SLACK_BOT}2> hi", "@helper hi", "<!channel> hi"]
        async with fake, running(slack.bot(fake, tmp_path), desk):
            for text in said:
                await fake.say(text, room="C1")
            arrivals = await desk.got(5)
        assert [one.mentioned for one in arrivals] == [False, True, False, False, False]
        assert [one.to_all for one in arrivals] == [False] * 4 + [True]

    asyncio.run(scene())
