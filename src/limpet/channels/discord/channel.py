"""The channel `discord`: what a bot puts into chats. What comes in is in `stream`.

Events are ids of Discord's: of the message, of a changed message with the time of the change, of the interaction.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from limpet.channels.discord.api import TOKEN, Api, ApiError
from limpet.channels.discord.reading import Reader
from limpet.channels.discord.stream import Stream
from limpet.channels.discord.wire import Message, Named
from limpet.channels.kept import Kept
from limpet.channels.kinds import Means
from limpet.channels.rest import Rest
from limpet.config.channels import DiscordSettings
from limpet.errors import ChannelError, ConfigError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address, Choice

LIMIT = 2_000
_LARGEST = 10 << 20
_FILES = 10
_MENU = 100
_UNKNOWN_MESSAGE = 10008
_NO_EMBEDS, _QUIET = 1 << 2, 1 << 12
_SAME = 120_000
"""Milliseconds in which a second message of the same nonce is taken for the first; Discord says "a few minutes"."""


class Unsure(Struct, frozen=True):
    """Messages of which it is open whether they arrived: nonce to the time of the first try (UTC ms)."""

    since: dict[str, int] = {}


def make(account: str, settings: DiscordSettings, means: Means) -> DiscordChannel:
    """The channel of `[channels.discord.ACCOUNT]`. Raises `ConfigError` when it has no token."""
    return DiscordChannel(account, settings, means)


class DiscordChannel:
    """One bot. What leaves open whether it arrived is sent once more after `again` seconds: Discord drops doubles."""

    def __init__(self, account: str, settings: DiscordSettings, means: Means, *, again: float = 1.0) -> None:
        token = means.secret(settings.token) if settings.token else ""
        if not token:
            raise ConfigError(f"channels.discord.{account}.token is empty", hint=TOKEN)
        self._account = account
        self._means = means
        self._again = again
        self._rest = Rest("Discord", proxy=settings.proxy)
        self._api = Api(token, base_url=settings.base_url, rest=self._rest, clock=means.clock)
        reader = Reader(account, self._api)
        self._stream = Stream(self._api, reader, rest=self._rest, folder=means.folder, clock=means.clock)
        self._unsure = Kept(means.folder, "unsure.json", Unsure())

    @property
    def name(self) -> str:
        return "discord"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        # Five messages in five seconds and chat; a sign of typing lasts ten. Files: 10 MiB in servers without boosts.
        return Traits(
            markup="discord",
            limit=LIMIT,
            edit_every=1.5,
            typing=10.0,
            reactions=True,
            buttons=True,
            upload=_LARGEST,
            caption=LIMIT,
            repeatable=True,
            needs_link=False,
        )

    async def run(self, desk: Desk) -> None:
        await self._stream.run(desk)

    async def close(self) -> None:
        await self._rest.close()

    async def send(self, piece: Piece) -> str:
        if len(piece.attachments) > _FILES:
            raise RefusedError(f"one message holds at most {_FILES} attachments")
        try:
            files = tuple(
                [
                    (one.name, await asyncio.to_thread(Path(self._means.blob(one.blob)).read_bytes))
                    for one in piece.attachments
                ]
            )
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
        nonce = hashlib.sha256(piece.key.encode()).hexdigest()[:25]
        body = _said(piece) | {"nonce": nonce, "enforce_nonce": True}
        body["flags"] = _NO_EMBEDS | (_QUIET if piece.quiet else 0)
        if piece.reply_to:
            body["message_reference"] = {"message_id": _id(piece.reply_to), "fail_if_not_exists": False}
        if files:
            body["attachments"] = [{"id": at, "filename": name} for at, (name, _) in enumerate(files)]
        return await self._once(nonce, _path(piece.address), body=body, files=files)

    async def _once(
        self, nonce: str, path: str, *, body: dict[str, object], files: tuple[tuple[str, bytes], ...]
    ) -> str:
        """Send what must stand there once, however often it is tried."""
        earlier = self._note(nonce)
        try:
            try:
                message = await self._api.call("POST", path, Named, body=body, files=files)
            except UnsureError as unsure:
                await asyncio.sleep(self._again)
                try:
                    message = await self._api.call("POST", path, Named, body=body, files=files)
                except ChannelError:
                    raise unsure from None
        except (NotAcceptedError, RefusedError):
            if not earlier:
                self._settle(nonce)
            raise
        self._settle(nonce)
        return message.id

    def _note(self, nonce: str) -> bool:
        """Whether it is open from an earlier try if this message arrived; on disk before it is sent.

        Raises `UnsureError` when that try is so long ago that Discord would not know the message again.
        """
        now = self._means.clock.now()
        first = self._unsure.value.since.get(nonce)
        if first is not None and now - first > _SAME:
            raise UnsureError("an earlier try may have arrived, too long ago to be sure")
        if first is None:
            lately = {one: at for one, at in self._unsure.value.since.items() if now - at < 30 * 24 * 3_600_000}
            self._unsure.save(Unsure({**lately, nonce: now}))
        return first is not None

    def _settle(self, nonce: str) -> None:
        self._unsure.save(Unsure({one: at for one, at in self._unsure.value.since.items() if one != nonce}))

    async def edit(self, piece: Piece, message: str) -> None:
        path = f"{_path(piece.address)}/{_id(message)}"
        await self._api.call("PATCH", path, Named, body=_said(piece))

    async def remove(self, address: Address, message: str) -> None:
        try:
            await self._api.call("DELETE", f"{_path(address)}/{_id(message)}", type(None))
        except ApiError as error:
            if error.code != _UNKNOWN_MESSAGE:
                raise

    async def typing(self, address: Address) -> None:
        await self._api.call("POST", f"/channels/{_id(address.thread or address.chat)}/typing", type(None))

    async def react(self, address: Address, message: str, emoji: str) -> None:
        path = f"{_path(address)}/{_id(message)}"
        there = (await self._api.call("GET", path, Message)).reactions
        ours = [one.emoji.name for one in there if one.me and one.emoji.name and not one.emoji.id]
        for old in ours:
            if old != emoji:
                await self._api.call("DELETE", f"{path}/reactions/{quote(old)}/@me", type(None))
        if emoji and emoji not in ours:
            await self._api.call("PUT", f"{path}/reactions/{quote(emoji)}/@me", type(None))

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        rest = {"type": 3, "name": "input", "description": "what follows the command", "required": False}
        commands = [
            {"type": 1, "name": entry.name.lower()[:32], "description": entry.about[:100], "options": [rest]}
            for entry in menu[:_MENU]
        ]
        app = await self._api.call("GET", "/applications/@me", Named)
        await self._api.call("PUT", f"/applications/{app.id}/commands", list[Named], body=commands)


def _said(piece: Piece) -> dict[str, object]:
    """What new and changed messages have. Nobody is called by what a model wrote."""
    return {
        "content": piece.body.markup,
        "allowed_mentions": {"parse": [], "replied_user": False},
        "components": _rows(piece.choices),
    }


def _rows(choices: tuple[Choice, ...]) -> list[object]:
    """Buttons, five in a row and at most five rows."""
    buttons = [{"type": 2, "style": 2, "label": one.label[:80], "custom_id": one.says} for one in choices[:25]]
    return [{"type": 1, "components": buttons[at : at + 5]} for at in range(0, len(buttons), 5)]


def _path(address: Address) -> str:
    return f"/channels/{_id(address.thread or address.chat)}/messages"


def _id(id: str) -> str:
    if not id.isdecimal():
        raise RefusedError(f"{id!r} is no id of Discord's")
    return id
