"""Beside the contract: what is Matrix's own, with Synapse."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import nio
import pytest
from aiohttp import web

from limpet.channels.kinds import Means
from limpet.channels.matrix.channel import MatrixChannel
from limpet.channels.matrix.place import Place
from limpet.config.channels import MatrixSettings
from limpet.errors import ConfigError, NotAcceptedError, RefusedError
from limpet.testing.clock import FakeClock
from tests.channel.harness import RecordingDesk, Say, piece, running
from tests.channel.matrix import MatrixHarness
from tests.channel.server import free_port

Scene = Callable[[MatrixHarness], Awaitable[None]]


def play(folder: Path, scene: Scene) -> None:
    async def whole() -> None:
        async with MatrixHarness(folder) as harness:
            await scene(harness)

    asyncio.run(whole())


def test_how_far_we_have_read_outlives_the_process(tmp_path: Path) -> None:
    assert Place(str(tmp_path / "new")).read() == ""
    Place(str(tmp_path / "new")).write("s1_2")
    Place(str(tmp_path / "new")).write("s3_4")
    assert Place(str(tmp_path / "new")).read() == "s3_4"


def test_without_an_account_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"channels\.matrix\.main"):
        MatrixChannel("main", MatrixSettings(user="@limpet:x"), Means(FakeClock(), str(tmp_path), str, str))


def test_a_wrong_password_is_a_refusal_that_does_not_tell_it(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        means = Means(FakeClock(), str(tmp_path), lambda _: "wrong-7321", str)
        with pytest.raises(RefusedError) as caught:
            await MatrixChannel("main", harness.settings(), means).run(RecordingDesk())
        assert "7321" not in str(caught.value)

    play(tmp_path, scene)


@pytest.mark.parametrize(("invites", "follows"), [("known", False), ("all", True), ("none", False)])
def test_invitations_of_strangers_are_followed_where_that_is_wanted(
    tmp_path: Path, invites: str, follows: bool
) -> None:
    async def scene(harness: MatrixHarness) -> None:
        bob = harness.people["bob"]
        room = await bob.room(harness.bot.id)
        async with running(harness.make(harness.settings(invites=invites)), RecordingDesk()):
            joined = await bob.ask("GET", f"/rooms/{quote(room)}/joined_members")
            assert (harness.bot.id in joined["joined"]) is follows

    play(tmp_path, scene)


def test_what_was_said_before_the_first_start_is_not_taken(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        room = harness.rooms["direct"]
        await harness.bot.ask("POST", f"/join/{quote(room)}", {})
        await harness.people["ann"].say(room, "before your time")
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            await harness.say(Say("now"))
            assert [one.text for one in await desk.got(1)] == ["now"]

    play(tmp_path, scene)


def test_what_was_said_after_the_invitation_is_taken(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        ann, desk = harness.people["ann"], RecordingDesk()
        async with running(harness.make(), desk):
            room = await ann.room(initial_state=[], name="Plans")
            await ann.say(room, "before you were asked")
            await ann.ask("POST", f"/rooms/{quote(room)}/invite", {"user_id": harness.bot.id})
            await ann.say(room, "after you were asked")
            assert [one.text for one in await desk.got(1)] == ["after you were asked"]

    play(tmp_path, scene)


def test_more_than_a_sync_holds_comes_whole_and_in_order(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        async with running(harness.make(), RecordingDesk()):
            pass
        for number in range(130):
            await harness.say(Say(str(number)))
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            assert [one.text for one in await desk.got(130)] == [str(number) for number in range(130)]

    play(tmp_path, scene)


def test_the_same_piece_sent_again_is_one_message_also_by_another_process(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        where = harness.address("direct")
        ids: set[str] = set()
        for _ in range(2):
            channel, desk = harness.make(), RecordingDesk()
            async with running(channel, desk):
                await harness.say(Say("go on"))
                await desk.got(1)
                ids.add(await channel.send(piece(where, "once")))
                ids.add(await channel.send(piece(where, "once")))
        assert len(ids) == len(await harness.shown("direct")) == 1

    play(tmp_path, scene)


def test_nobody_changes_the_words_of_another(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        desk = RecordingDesk()
        async with running(harness.make(), desk):
            message = await harness.say(Say("buy milk", place="group"))
            await harness.say(Say("buy beer", sender="bob", place="group", replaces=message))
            await harness.say(Say("the end", place="group"))
            assert [one.text for one in await desk.got(2)] == ["buy milk", "the end"]

    play(tmp_path, scene)


def test_the_name_in_the_text_means_the_bot_and_a_notice_says_nothing(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        desk, bob, room = RecordingDesk(), harness.people["bob"], harness.rooms["group"]
        async with running(harness.make(), desk):
            await bob.put(room, {"msgtype": "m.notice", "body": "I am a bot"})
            await bob.say(room, f"{harness.bot.name}: hello")
            await bob.put(room, {"msgtype": "m.text", "body": "all of you", "m.mentions": {"room": True}})
            named, everybody = await desk.got(2)
            assert (named.text, named.mentioned, named.to_all) == ("hello", True, False)
            assert (everybody.mentioned, everybody.to_all) == (False, True)

    play(tmp_path, scene)


def test_several_files_follow_their_text(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        channel, desk = harness.make(), RecordingDesk()
        async with running(channel, desk):
            await harness.say(Say("send me both"))
            await desk.got(1)
            files = (await harness.attach("a.txt", b"a"), await harness.attach("b.txt", b"b"))
            await channel.send(piece(harness.address("direct"), "both", attachments=files))
            shown = await harness.shown("direct")
            assert (shown[0].text, shown[0].files) == ("both", ())
            assert [one.files for one in shown[1:]] == [("a.txt",), ("b.txt",)]

    play(tmp_path, scene)


def test_nothing_is_said_openly_in_an_encrypted_room(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        channel, desk = harness.make(), RecordingDesk()
        await harness.people["ann"].state(
            harness.rooms["direct"], "m.room.encryption", {"algorithm": "m.megolm.v1.aes-sha2"}
        )
        async with running(channel, desk):
            await harness.people["ann"].put(harness.rooms["direct"], {"ciphertext": "x"}, "m.room.encrypted")
            assert "encrypted" in (await desk.got(1))[0].text
            with pytest.raises(RefusedError, match="encrypted"):
                await channel.send(piece(harness.address("direct"), "openly"))
        assert await harness.shown("direct") == []

    play(tmp_path, scene)


def test_a_homeserver_that_wants_fewer_requests_says_for_how_long(tmp_path: Path) -> None:
    async def limit(_: web.Request) -> web.Response:
        body = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": 1500}
        return web.json_response(body, status=429)

    async def scene() -> None:
        app, port = web.Application(), free_port()
        app.router.add_route("*", "/{path:.*}", limit)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        settings = MatrixSettings(homeserver=f"http://127.0.0.1:{port}", user="@limpet:localhost", password="env:X")
        try:
            with pytest.raises(NotAcceptedError) as caught:
                await MatrixChannel("main", settings, Means(FakeClock(), str(tmp_path), str, str)).run(RecordingDesk())
            assert caught.value.retry_after == 1.5
        finally:
            await runner.cleanup()

    asyncio.run(scene())


@pytest.mark.skipif(importlib.util.find_spec("vodozemac") is None, reason="the extra matrix-e2e is not installed")
def test_encrypted_rooms_are_read_and_answered(tmp_path: Path) -> None:
    async def scene(harness: MatrixHarness) -> None:
        config = nio.AsyncClientConfig(encryption_enabled=True)
        (tmp_path / "ann").mkdir()
        ann = nio.AsyncClient(
            f"http://127.0.0.1:{harness.proxy.port}", harness.people["ann"].id, store_path=str(tmp_path / "ann"),
            config=config,
        )  # fmt: skip
        await ann.login("limpet-4410-rock")
        room = harness.rooms["direct"]
        await harness.people["ann"].state(room, "m.room.encryption", {"algorithm": "m.megolm.v1.aes-sha2"})
        channel, desk = harness.make(harness.settings(encryption=True)), RecordingDesk()
        heard: list[str] = []
        ann.add_event_callback(lambda _, event: heard.append(event.body), nio.RoomMessageText)
        task = asyncio.create_task(ann.sync_forever(timeout=500, full_state=True))
        try:
            async with running(channel, desk):
                await desk.until(lambda: room in ann.rooms and len(ann.rooms[room].users) == 2)
                content = {"msgtype": "m.text", "body": "a secret"}
                await ann.room_send(room, "m.room.message", content, ignore_unverified_devices=True)
                assert (await desk.got(1))[0].text == "a secret"
                await channel.send(piece(harness.address("direct"), "kept"))
                await desk.until(lambda: "kept" in heard)
        finally:
            task.cancel()
            await asyncio.wait({task})
            await ann.close()
        kinds = [one["type"] for one in await harness.people["ann"].events(room)]
        assert kinds.count("m.room.encrypted") == 2
        assert "m.room.message" not in kinds

    play(tmp_path, scene)
