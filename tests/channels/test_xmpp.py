"""Beside the contract: what is XMPP's own, with prosody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import slixmpp

from limpet.channels.kinds import Means
from limpet.channels.xmpp.channel import XmppChannel
from limpet.channels.xmpp.rooms import Rooms
from limpet.config.channels import XmppSettings
from limpet.errors import ChannelError, ConfigError, RefusedError
from limpet.testing.clock import FakeClock
from tests.channel.harness import RecordingDesk, Say, piece, running
from tests.channel.xmpp import ROOM, XmppHarness

Scene = Callable[[XmppHarness], Awaitable[None]]


def play(folder: Path, scene: Scene) -> None:
    async def whole() -> None:
        async with XmppHarness(folder) as harness:
            await scene(harness)

    asyncio.run(whole())


def test_without_an_account_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"channels\.xmpp\.main"):
        XmppChannel("main", XmppSettings(jid="limpet"), Means(FakeClock(), str(tmp_path), str, str))


def test_a_wrong_password_is_a_refusal_that_does_not_tell_it(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        means = Means(FakeClock(), str(tmp_path), lambda _: "wrong-7321", str)
        with pytest.raises(RefusedError) as caught:
            await XmppChannel("main", harness.settings(), means).run(RecordingDesk())
        assert "7321" not in str(caught.value)

    play(tmp_path, scene)


def test_where_tls_is_wanted_no_password_goes_out_without(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        settings = msgspec.structs.replace(harness.settings(), tls=True)
        with pytest.raises(ChannelError):
            await harness.make(settings).run(RecordingDesk())
        assert b"<auth" not in harness.proxy.said

    play(tmp_path, scene)


def test_what_was_said_in_a_room_before_the_first_start_is_not_taken(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        await harness.say(Say("before your time", place="group"))
        await harness.people["ann"].settled()
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            await harness.say(Say("now", place="group"))
            assert [one.text for one in await desk.got(1)] == ["now"]

    play(tmp_path, scene)


def test_what_was_said_in_a_room_while_away_is_fetched_under_the_same_ids(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            await harness.say(Say("one", place="group"))
            await desk.got(1)
        await harness.say(Say("while you were away", place="group"))
        await harness.people["ann"].settled()
        again = RecordingDesk()
        async with running(harness.make(), again):
            await harness.say(Say("two", place="group"))
            await again.until(lambda: "two" in [one.text for one in again.arrivals])
        fresh = [one.text for one in again.arrivals if one.event != desk.arrivals[0].event]
        assert fresh == ["while you were away", "two"]

    play(tmp_path, scene)


def test_the_history_of_a_room_begins_with_our_first_visit(tmp_path: Path) -> None:
    rooms = Rooms(str(tmp_path / "new"))
    assert rooms.since(ROOM) is None
    rooms.note(ROOM, 1_000_500)
    rooms.note(ROOM, 2_000_000)
    rooms.note(ROOM, 1_500_000)
    again = Rooms(str(tmp_path / "new"))
    since = again.since(ROOM)
    assert since is not None
    assert 1_000_000 < since.timestamp() * 1000 <= 2_000_000
    assert [again.wants(ROOM, time) for time in (999_999, 1_000_000, 3_000_000)] == [False, True, True]
    assert not again.wants("other@rooms.localhost", 3_000_000)


def test_who_was_written_to_while_away_gets_it_later(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        await harness.say(Say("are you there?"))
        await harness.people["ann"].settled()
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            (arrival,) = await desk.got(1)
            assert (arrival.text, arrival.sent > 0) == ("are you there?", True)

    play(tmp_path, scene)


def test_who_whispers_in_a_room_is_not_heard(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            harness.people["ann"].say(f"{ROOM}/limpet", "psst")
            await harness.say(Say("aloud"))
            assert [one.text for one in await desk.got(1)] == ["aloud"]

    play(tmp_path, scene)


def test_nobody_changes_the_words_of_another(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            message = await harness.say(Say("buy milk", place="group"))
            await desk.got(1)
            await harness.say(Say("buy beer", sender="bob", place="group", replaces=message))
            first, second = await desk.got(2)
            assert second.replaces != first.message

    play(tmp_path, scene)


def test_a_message_for_other_devices_says_that_it_cannot_be_read(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            ann = harness.people["ann"]
            message = ann.make_message(slixmpp.JID("limpet@localhost"), mbody="I sent you OMEMO")
            message.append(slixmpp.ET.fromstring("<encrypted xmlns='eu.siacs.conversations.axolotl'/>"))
            message.send()
            assert "encrypted" in (await desk.got(1))[0].text

    play(tmp_path, scene)


def test_thrown_out_of_a_room_it_comes_back(tmp_path: Path) -> None:
    async def scene(harness: XmppHarness) -> None:
        desk = RecordingDesk()
        means = Means(FakeClock(), str(tmp_path / "x"), lambda _: "barnacle-5518", str)
        channel = XmppChannel("main", harness.settings(), means, silence=0.05)
        async with running(channel, desk):
            await harness.people["ann"].plugin["xep_0045"].set_role(slixmpp.JID(ROOM), "limpet", "none")
            async with asyncio.timeout(20):
                while True:
                    try:
                        await channel.send(piece(harness.address("group"), "here again"))
                    except RefusedError:
                        await asyncio.sleep(0.02)
                    else:
                        break

    play(tmp_path, scene)
