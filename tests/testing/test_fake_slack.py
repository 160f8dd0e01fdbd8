"""The fake Slack is as strict as the real one."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from limpet.testing.fakes.slack import FakeSlack

SECTION = {"type": "section", "text": {"type": "mrkdwn", "text": "x"}}


async def ask(slack: FakeSlack, method: str, token: str = FakeSlack.bot_token, **params: str) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{slack.base_url}/{method}", data=params, headers=headers) as response:
            return await response.json()


def button(number: int, label: str = "Yes") -> dict[str, object]:
    text = {"type": "plain_text", "text": label}
    return {"type": "button", "action_id": f"choice{number}", "text": text, "value": "yes"}


def actions(*elements: object) -> str:
    return json.dumps([SECTION, {"type": "actions", "elements": list(elements)}])


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"channel": "C9", "text": "x"}, "channel_not_found"),
        ({"channel": "C1", "text": "x"}, "not_in_channel"),
        ({"channel": "C2", "text": "x"}, "is_archived"),
        ({"channel": "D1", "text": " "}, "no_text"),
        ({"channel": "D1", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "D1", "text": "x", "thread_ts": "1.2"}, "thread_not_found"),
        ({"channel": "D1", "text": "x", "blocks": "[{}]"}, "invalid_blocks"),
        ({"channel": "D1", "text": "x", "blocks": "{"}, "invalid_arguments"),
        ({"channel": "D1", "text": "x", "blocks": actions()}, "invalid_blocks"),
        ({"channel": "D1", "text": "x", "blocks": actions(button(1), button(1))}, "invalid_blocks"),
        ({"channel": "D1", "text": "x", "blocks": actions(*map(button, range(26)))}, "invalid_blocks"),
        ({"channel": "D1", "text": "x", "blocks": actions(button(1, "x" * 76))}, "invalid_blocks"),
    ],
)
def test_it_refuses_what_slack_refuses(params: dict[str, str], error: str) -> None:
    async def scene() -> None:
        async with FakeSlack() as slack:
            slack.room("C1", joined=False)
            slack.room("C2").archived = True
            assert await ask(slack, "chat.postMessage", **params) == {"ok": False, "error": error}
            assert not slack.ours("D1")

    asyncio.run(scene())


def test_it_looks_at_tokens_and_scopes() -> None:
    async def scene() -> None:
        async with FakeSlack() as slack:
            assert (await ask(slack, "auth.test", "no"))["error"] == "invalid_auth"
            assert (await ask(slack, "auth.test", slack.app_token))["error"] == "not_allowed_token_type"
            assert (await ask(slack, "apps.connections.open"))["error"] == "not_allowed_token_type"
            slack.scopes.clear()
            refused = await ask(slack, "chat.postMessage", channel="D1", text="x")
            assert (refused["error"], refused["needed"]) == ("missing_scope", "chat:write")

    asyncio.run(scene())


def test_an_envelope_is_given_until_it_is_acknowledged() -> None:
    async def scene() -> None:
        async with FakeSlack() as slack, aiohttp.ClientSession() as session:
            url = str((await ask(slack, "apps.connections.open", slack.app_token))["url"])
            async with session.ws_connect(url) as socket:
                assert (await socket.receive_json())["type"] == "hello"
                await slack.say("hi")
                first = await socket.receive_json()
                await slack.sockets.give_again()
                again = await socket.receive_json()
                assert (again["payload"], again["retry_attempt"]) == (first["payload"], 1)
                await socket.send_json({"envelope_id": again["envelope_id"]})
                await socket.send_json({"envelope_id": "no"})
                async with asyncio.timeout(10):
                    while not slack.sockets.faults:
                        await asyncio.sleep(0.005)
                assert not slack.sockets.waiting
            with pytest.raises(aiohttp.WSServerHandshakeError):  # a ticket serves once
                await session.ws_connect(url)

    asyncio.run(scene())
