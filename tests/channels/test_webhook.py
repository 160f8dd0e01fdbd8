"""The channel that posts answers of jobs: what is sent, how it is signed, and what each answer means."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest
from aiohttp import web

from limpet.channels.webhook.channel import WebhookChannel, signature
from limpet.config.webhooks import TargetSettings
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError, UnsureError
from limpet.net.client import Web
from limpet.net.guard import Guard, NetworkRules
from limpet.testing.clock import FakeClock
from limpet.types.channel import Piece
from limpet.types.envelope import Address, Body

HERE = NetworkRules(allow_cidrs=("127.0.0.0/8",))
PIECE = Piece(Address("webhook", "main", "ci", "nightly"), Body("**All** well", "All well"), "p-1")


class Receiver:
    """Answers with one status; `seen` are the requests."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.seen: list[tuple[Mapping[str, str], bytes]] = []

    async def take(self, request: web.Request) -> web.Response:
        self.seen.append((dict(request.headers), await request.read()))
        return web.Response(status=self.status, headers=self.headers)


async def sent(
    status: int = 200,
    *,
    headers: Mapping[str, str] | None = None,
    rules: NetworkRules = HERE,
    piece: Piece = PIECE,
    secret: str = "s3cret",
    stopped: bool = False,
) -> Receiver:
    """Post to a receiver on loopback."""
    receiver = Receiver(status, headers or {})
    app = web.Application()
    app.router.add_route("*", "/in", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    targets = {"ci": TargetSettings(f"http://127.0.0.1:{port}/in", "secret:ci" if secret else "")}
    if stopped:
        await runner.cleanup()
    channel = WebhookChannel(lambda: targets, Web(Guard(rules)), secret=lambda one, key: secret, clock=FakeClock())
    try:
        await channel.send(piece)
    finally:
        await channel.close()
        await runner.cleanup()
    return receiver


def test_a_result_is_posted_as_signed_json() -> None:
    receiver = asyncio.run(sent())
    ((headers, body),) = receiver.seen
    posted = json.loads(body)
    assert {key: posted[key] for key in ("id", "target", "job", "text")} == {
        "id": "p-1",
        "target": "ci",
        "job": "nightly",
        "text": "**All** well",
    }
    assert headers["Idempotency-Key"] == "p-1"
    at = int(headers["X-Limpet-Signature"].partition(",")[0].removeprefix("t="))
    assert headers["X-Limpet-Signature"] == signature("s3cret", body, at)


def test_without_a_secret_it_is_not_signed() -> None:
    ((headers, _),) = asyncio.run(sent(secret="")).seen
    assert "X-Limpet-Signature" not in headers


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (201, None),
        (204, None),
        (302, RefusedError),
        (400, RefusedError),
        (404, RefusedError),
        (429, NotAcceptedError),
        (503, NotAcceptedError),
        (500, UnsureError),
        (502, UnsureError),
    ],
)
def test_each_answer_says_whether_it_arrived(status: int, kind: type[ChannelError] | None) -> None:
    headers = {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else {}
    if kind is None:
        asyncio.run(sent(status))
        return
    with pytest.raises(kind, match=str(status)):
        asyncio.run(sent(status, headers=headers))


def test_it_is_tried_again_when_the_receiver_says() -> None:
    with pytest.raises(NotAcceptedError) as caught:
        asyncio.run(sent(429, headers={"Retry-After": "17"}))
    assert caught.value.retry_after == 17


def test_nobody_there_is_no_arrival() -> None:
    with pytest.raises(NotAcceptedError):
        asyncio.run(sent(stopped=True))


def test_an_address_that_tools_must_not_reach_is_refused() -> None:
    with pytest.raises(RefusedError, match="this machine itself"):
        asyncio.run(sent(rules=NetworkRules()))


def test_a_target_that_is_gone_is_refused() -> None:
    other = Piece(Address("webhook", "main", "gone"), Body("x", "x"), "p-2")
    with pytest.raises(RefusedError, match="no webhook 'gone'"):
        asyncio.run(sent(piece=other))


def test_a_secret_that_cannot_be_had_waits() -> None:
    def missing(reference: str, key: str) -> str:
        raise ConfigError(f"{key}: there is no secret ci.")

    async def main() -> None:
        targets = {"ci": TargetSettings("http://127.0.0.1:1/", "secret:ci")}
        channel = WebhookChannel(lambda: targets, Web(Guard(HERE)), secret=missing, clock=FakeClock())
        await channel.send(PIECE)

    with pytest.raises(NotAcceptedError, match=r"webhooks\.targets\.ci\.secret"):
        asyncio.run(main())
