"""The fake Discord is as strict as the real one."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from limpet.testing.fakes.discord import FakeDiscord

NOBODY = {"parse": []}
BUTTON = {"type": 2, "style": 2, "label": "Yes", "custom_id": "yes"}


async def ask(discord: FakeDiscord, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
    told = {"Authorization": f"Bot {discord.token}", "User-Agent": "DiscordBot (x, 1)", **headers}
    async with aiohttp.ClientSession() as session:
        async with session.request(method, discord.base_url + path, json=body, headers=told) as response:
            return response.status, await response.json() if "json" in response.content_type else None


def rows(*buttons: object) -> list[object]:
    return [{"type": 1, "components": list(buttons)}]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"content": "x" * 2001, "allowed_mentions": NOBODY}, 50035),
        ({"content": " ", "allowed_mentions": NOBODY}, 50006),
        ({"content": "x"}, 0),
        ({"content": "x", "allowed_mentions": {"parse": ["everyone"]}}, 0),
        ({"content": "x", "allowed_mentions": NOBODY, "nonce": "n" * 26}, 50035),
        ({"content": "x", "allowed_mentions": NOBODY, "message_reference": {"message_id": "5"}}, 50035),
        ({"content": "x", "allowed_mentions": NOBODY, "components": rows()}, 0),
        ({"content": "x", "allowed_mentions": NOBODY, "components": rows(*[BUTTON] * 6)}, 0),
        ({"content": "x", "allowed_mentions": NOBODY, "components": rows(BUTTON, BUTTON)}, 0),
        ({"content": "x", "allowed_mentions": NOBODY, "components": rows({**BUTTON, "label": "x" * 81})}, 0),
        ({"content": "x", "allowed_mentions": NOBODY, "attachments": [{"id": 0, "filename": "a"}]}, 0),
    ],
)
def test_it_refuses_what_discord_refuses(body: object, code: int) -> None:
    async def scene() -> None:
        async with FakeDiscord() as discord:
            status, found = await ask(discord, "POST", "/channels/91/messages", body)
            assert status == 400
            assert isinstance(found, dict)
            assert found["code"] == code
            assert not discord.ours("91")

    asyncio.run(scene())


def test_it_looks_at_the_token_and_at_who_asks() -> None:
    async def scene() -> None:
        async with FakeDiscord() as discord:
            assert (await ask(discord, "GET", "/channels/91", Authorization="Bot no"))[0] == 401
            assert (await ask(discord, "GET", "/channels/91", **{"User-Agent": "curl"})) == (403, None)
            assert (await ask(discord, "GET", "/channels/404"))[0] == 404
            assert (await ask(discord, "GET", "/channels/91"))[0] == 200

    asyncio.run(scene())


def test_a_nonce_counts_for_some_minutes() -> None:
    async def scene() -> None:
        async with FakeDiscord() as discord:
            body = {"content": "x", "allowed_mentions": NOBODY, "nonce": "n", "enforce_nonce": True}
            for _ in range(2):
                await ask(discord, "POST", "/channels/91/messages", body)
            assert len(discord.ours("91")) == 1
            discord.ahead = 600.0
            await ask(discord, "POST", "/channels/91/messages", body)
            assert len(discord.ours("91")) == 2

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([{"op": 3, "d": {}}], 4003),
        ([{"op": 2, "d": {"token": "no"}}], 4004),
        ([{"op": 2, "d": {"token": FakeDiscord.token, "intents": 1}}], 4013),
        ([{"op": 2, "d": {"token": FakeDiscord.token, "intents": 1 << 15, "properties": {}}}], 4014),
        ([{"op": 2, "d": {"token": FakeDiscord.token, "intents": 1, "properties": {}}}] * 2, 4005),
    ],
)
def test_its_gateway_closes_as_discords(frames: list[dict[str, object]], code: int) -> None:
    async def scene() -> None:
        async with FakeDiscord(privileged=False) as discord, aiohttp.ClientSession() as session:
            async with session.ws_connect(f"{discord.gateway.url}/?v=10&encoding=json") as socket:
                for frame in frames:
                    await socket.send_json(frame)
                async with asyncio.timeout(10):
                    async for _ in socket:
                        pass
                assert socket.close_code == code

    asyncio.run(scene())
