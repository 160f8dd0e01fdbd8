"""The channel `telegram`: what a bot puts into chats. What comes in is in `polling`; its events are `update_id`s."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from limpet.channels.kinds import Means
from limpet.channels.telegram.api import Api, ApiError, Value
from limpet.channels.telegram.moves import Moves
from limpet.channels.telegram.polling import Patience, Polling
from limpet.channels.telegram.uploads import LARGEST, captioned, upload
from limpet.channels.telegram.wire import Sent
from limpet.config.channels import TelegramSettings
from limpet.errors import ConfigError, RefusedError
from limpet.types.channel import Body, Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address, Choice

_Done = TypeVar("_Done")
_MENU = 100
"""Commands that a menu holds."""


def make(account: str, settings: TelegramSettings, means: Means) -> TelegramChannel:
    """The channel of `[channels.telegram.ACCOUNT]`. Raises `ConfigError` when it has no token."""
    return TelegramChannel(account, settings, means)


class TelegramChannel:
    """One bot."""

    def __init__(
        self, account: str, settings: TelegramSettings, means: Means, *, patience: Patience | None = None
    ) -> None:
        token = means.secret(settings.token) if settings.token else ""
        if not token:
            where = f"channels.telegram.{account}.token"
            raise ConfigError(f"{where} is empty", hint="@BotFather on Telegram gives a bot and its token.")
        self._account = account
        self._lost = not settings.resend_on_5xx
        self._blob = means.blob
        self._api = Api(token, base_url=settings.base_url, proxy=settings.proxy, lost_on_5xx=self._lost)
        self._moves = Moves(means.folder)
        self._commands: dict[str, str] = {}
        self._polling = Polling(
            self._api, account, moves=self._moves, commands=self._commands, patience=patience or Patience()
        )

    @property
    def name(self) -> str:
        return "telegram"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        # In a group 20 messages and edits a minute (https://core.telegram.org/bots/faq); 4096 after parsing.
        return Traits(
            markup="telegram",
            limit=4096,
            unit="utf16",
            edit_every=3.0,
            typing=5.0,
            reactions=True,
            buttons=True,
            upload=LARGEST,
            caption=1024,
            lost_on_5xx=self._lost,
            needs_link=False,
        )

    async def run(self, desk: Desk) -> None:
        await self._polling.run(desk)

    async def close(self) -> None:
        await self._api.close()

    async def send(self, piece: Piece) -> str:
        if piece.attachments:
            return await self._upload(piece)
        common = _common(piece)

        async def act(chat: int | str) -> Sent:
            return await self._worded(
                "sendMessage", {"chat_id": chat, **common, **_NO_PREVIEW}, body=piece.body, field="text"
            )

        return str((await self._moving(piece.address, act)).message_id)

    async def _upload(self, piece: Piece) -> str:
        if len(piece.attachments) > 1 and piece.choices:
            raise RefusedError("several attachments in one message cannot have buttons")
        try:
            data = [await asyncio.to_thread(Path(self._blob(one.blob)).read_bytes) for one in piece.attachments]
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
        common = _common(piece)

        async def act(chat: int | str) -> list[Sent]:
            try:
                return await self._put(piece, data, {"chat_id": chat, **common}, as_files=False)
            except ApiError as error:
                if not error.tells("PHOTO_", "IMAGE_PROCESS_FAILED", "VOICE_MESSAGES_FORBIDDEN"):
                    raise
                return await self._put(piece, data, {"chat_id": chat, **common}, as_files=True)

        return str((await self._moving(piece.address, act))[0].message_id)

    async def _put(self, piece: Piece, data: list[bytes], params: dict[str, Value], *, as_files: bool) -> list[Sent]:
        one = upload(piece.attachments, data, as_files=as_files)

        async def call(caption: dict[str, Value]) -> list[Sent]:
            full = {**params, **captioned(one, caption)}
            if one.album:
                return await self._api.call(one.method, list[Sent], params=full, files=one.files)
            return [await self._api.call(one.method, Sent, params=full, files=one.files)]

        return await _plainly(call, piece.body, "caption") if piece.body.markup else await call({})

    async def edit(self, piece: Piece, message: str) -> None:
        params: dict[str, Value] = {"message_id": _number(message), "reply_markup": _keyboard(piece.choices)}

        async def act(chat: int | str) -> None:
            there: dict[str, Value] = {"chat_id": chat, **params}
            try:
                await self._worded("editMessageText", {**there, **_NO_PREVIEW}, body=piece.body, field="text")
            except ApiError as error:
                if error.tells("there is no text in the message"):
                    await self._worded("editMessageCaption", there, body=piece.body, field="caption")
                elif not error.tells("message is not modified"):
                    raise

        await self._moving(piece.address, act)

    async def remove(self, address: Address, message: str) -> None:
        async def act(chat: int | str) -> None:
            try:
                params: dict[str, Value] = {"chat_id": chat, "message_id": _number(message)}
                await self._api.call("deleteMessage", bool, params=params)
            except ApiError as error:
                if not error.tells("message to delete not found"):
                    raise

        await self._moving(address, act)

    async def typing(self, address: Address) -> None:
        async def act(chat: int | str) -> None:
            params: dict[str, Value] = {"chat_id": chat, "action": "typing", **_thread(address)}
            await self._api.call("sendChatAction", bool, params=params)

        await self._moving(address, act)

    async def react(self, address: Address, message: str, emoji: str) -> None:
        reaction: list[object] = [{"type": "emoji", "emoji": emoji}] if emoji else []

        async def act(chat: int | str) -> None:
            params: dict[str, Value] = {"chat_id": chat, "message_id": _number(message), "reaction": reaction}
            await self._api.call("setMessageReaction", bool, params=params)

        await self._moving(address, act)

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        commands: list[object] = []
        for entry in menu[:_MENU]:
            name = entry.name.lower().replace("-", "_")[:32]
            commands.append({"command": name, "description": entry.about[:256]})
            if name != entry.name:
                self._commands[name] = entry.name
        await self._api.call("setMyCommands", bool, params={"commands": commands})

    async def _worded(self, method: str, params: dict[str, Value], *, body: Body, field: str) -> Sent:
        async def call(text: dict[str, Value]) -> Sent:
            return await self._api.call(method, Sent, params={**params, **text})

        return await _plainly(call, body, field)

    async def _moving(self, address: Address, act: Callable[[int | str], Awaitable[_Done]]) -> _Done:
        """Do it in the chat as it is called now. A group that has become a supergroup is followed, once."""
        try:
            return await act(_chat(self._moves.now(address.chat)))
        except ApiError as error:
            if not error.moved:
                raise
            self._moves.note(address.chat, str(error.moved))
            return await act(error.moved)


_NO_PREVIEW: dict[str, Value] = {"link_preview_options": {"is_disabled": True}}
"""A preview has Telegram fetch an address that the model wrote: nobody asked for that."""


async def _plainly(call: Callable[[dict[str, Value]], Awaitable[_Done]], body: Body, field: str) -> _Done:
    """Send the markup; when Telegram cannot read it, the plain text, once."""
    try:
        return await call({field: body.markup, "parse_mode": "HTML"})
    except ApiError as error:
        if not error.tells("can't parse entities"):
            raise
        return await call({field: body.plain})


def _common(piece: Piece) -> dict[str, Value]:
    """What every kind of message has, beside its chat."""
    found = _thread(piece.address)
    if piece.reply_to:
        found["reply_parameters"] = {"message_id": _number(piece.reply_to), "allow_sending_without_reply": True}
    if piece.choices:
        found["reply_markup"] = _keyboard(piece.choices)
    if piece.quiet:
        found["disable_notification"] = True
    return found


def _thread(address: Address) -> dict[str, Value]:
    return {"message_thread_id": _number(address.thread)} if address.thread else {}


def _keyboard(choices: tuple[Choice, ...]) -> dict[str, object]:
    """One button below the other, so that long labels can be read."""
    return {"inline_keyboard": [[{"text": one.label, "callback_data": one.says}] for one in choices]}


def _chat(chat: str) -> int | str:
    return int(chat) if chat.lstrip("-").isdecimal() else chat


def _number(id: str) -> int:
    if not id.isdecimal():
        raise RefusedError(f"{id!r} is no message of Telegram's")
    return int(id)
