"""The channel `webhook`: nothing comes in. A chat is the name of a target, its thread the job that speaks.

Each message is one POST of JSON. `Idempotency-Key` is the same however often it is tried; `X-Limpet-Signature` is
`t=TIME,v1=HEX`, the HMAC-SHA256 over `TIME.BODY` with the secret of the target.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Mapping

from msgspec import Struct, json

from limpet.channels.fixed import Fixed
from limpet.config.channels import ChannelSettings
from limpet.config.webhooks import TargetSettings
from limpet.errors import ConfigError, NetworkRefusedError, NotAcceptedError, RefusedError, ToolError, UnsureError
from limpet.net.client import Caps, Fetched, Web
from limpet.types.channel import ALL, Desk, Piece, Traits
from limpet.types.ports import Clock

NAME, ACCOUNT = "webhook", "main"
SETTINGS = ChannelSettings(direct="disabled", live=False, reactions=False)
CAPS = Caps(bytes=65_536, seconds=30.0)
"""What is read of an answer, and how long it may take."""
_LATER = (408, 425, 429, 503)


class Posted(Struct, frozen=True):
    """The body. `id` is the idempotency key, `at` when it is sent (UTC ms)."""

    id: str
    target: str
    job: str
    text: str
    at: int


class WebhookChannel(Fixed):
    """Posts through `web`, which it closes. `targets` gives those there are now, `secret` the value of a reference."""

    name = NAME
    account = ACCOUNT
    traits = Traits(markup="markdown", limit=ALL, needs_link=False)

    def __init__(
        self,
        targets: Callable[[], Mapping[str, TargetSettings]],
        web: Web,
        *,
        secret: Callable[[str, str], str],
        clock: Clock,
    ) -> None:
        self._targets = targets
        self._web = web
        self._secret = secret
        self._clock = clock

    async def run(self, desk: Desk) -> None:
        desk.up()
        await asyncio.Event().wait()

    async def close(self) -> None:
        await self._web.close()

    async def send(self, piece: Piece) -> str:
        address = piece.address
        target = self._targets().get(address.chat)
        if target is None:
            raise RefusedError(f"there is no webhook {address.chat!r} any more")
        try:
            key = self._secret(target.secret, f"webhooks.targets.{address.chat}.secret") if target.secret else ""
        except ConfigError as error:
            raise NotAcceptedError(str(error)) from None
        now = self._clock.now()
        body = json.encode(Posted(piece.key, address.chat, address.thread, piece.body.markup, now))
        headers = {"Content-Type": "application/json", "Idempotency-Key": piece.key, "User-Agent": "Limpet"}
        if key:
            headers["X-Limpet-Signature"] = signature(key, body, now // 1000)
        try:
            found = await self._web.post(target.url, body, headers=headers, caps=CAPS, follow=False)
        except NetworkRefusedError as error:
            raise RefusedError(error.present()) from None
        except ToolError as error:
            # Before a connection stands nothing can have arrived; afterwards nobody knows.
            raise (UnsureError(str(error)) if error.external else NotAcceptedError(str(error))) from None
        return _outcome(found)


def signature(secret: str, body: bytes, at: int) -> str:
    """What a receiver recomputes; `at` in seconds."""
    made = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


def _outcome(found: Fetched) -> str:
    """What an answer means. Raises `NotAcceptedError`, `RefusedError`, `UnsureError`."""
    if 200 <= found.status < 300:
        return ""
    said = f"the webhook answered {found.status}"
    if found.status in _LATER:
        wait = found.headers.get("retry-after", "")
        raise NotAcceptedError(said, retry_after=float(wait[:6]) if wait.isdecimal() else 0.0)
    if found.status < 500:
        raise RefusedError(said)
    raise UnsureError(said)
