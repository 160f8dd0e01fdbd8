"""Long polling that confirms only what is stored.

Telegram gives an update again until a larger offset is asked for; that happens after `Desk.receive` has returned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from limpet.channels.telegram.api import Api, ApiError, Value
from limpet.channels.telegram.moves import Moves
from limpet.channels.telegram.reading import Reader
from limpet.channels.telegram.wire import Message, Number, Pressed, Update, User
from limpet.errors import ChannelError, NotAcceptedError, RefusedError, StoreError
from limpet.types.channel import Desk

log = logging.getLogger(__name__)

_UPDATES: list[object] = ["message", "edited_message", "callback_query"]
_TOAST = 5.0
"""Seconds that a pressed button may take to be told so: the next updates wait for it."""


class Patience(Struct, frozen=True):
    """Seconds: `poll` that Telegram may hold a poll, `answer` that an answer may take beyond that.

    After failures in a row it waits `first`, then twice as long each time, up to `most`: six polls in the first
    minute of a trouble. `sleep` is `asyncio.sleep`, or a test's.
    """

    poll: int = 25
    answer: float = 15.0
    first: float = 2.0
    most: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def after(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return min(self.most, self.first * 2 ** min(failures - 1, 16))


class Polling:
    """The updates of one bot. `commands` maps commands as Telegram writes them to their real names."""

    def __init__(self, api: Api, account: str, *, moves: Moves, commands: dict[str, str], patience: Patience) -> None:
        self._api = api
        self._account = account
        self._moves = moves
        self._commands = commands
        self._patience = patience
        self._reader: Reader | None = None
        self._offset = 0

    async def run(self, desk: Desk) -> None:
        """Until cancelled; troubles are told to `desk` and waited for. Raises `RefusedError`: the token is wrong."""
        failures = 0
        proved = False
        while True:
            try:
                self._reader = self._reader or await self._meet()
                # The first poll, and that after a failure, is answered at once: it proves that messages flow.
                updates = await self._poll(self._patience.poll if proved else 0)
                await self._hand_over(updates, self._reader, desk)
            except (ChannelError, StoreError) as error:
                reason = _reason(error)
                pause = error.retry_after if isinstance(error, NotAcceptedError) else 0.0
            else:
                failures, proved = 0, True
                desk.up()
                continue
            failures, proved = failures + 1, False
            log.warning("telegram %s: %s", self._account, reason)
            desk.down(reason)
            await self._patience.sleep(max(pause, self._patience.after(failures)))

    async def _meet(self) -> Reader:
        me = await self._api.call("getMe", User, params={}, wait=self._patience.answer)
        return Reader(me, self._account, self._known, self._api, self._commands)

    def _known(self, chat: int) -> str:
        return self._moves.known(str(chat))

    async def _poll(self, seconds: int) -> list[msgspec.Raw]:
        params: dict[str, Value] = {"timeout": seconds, "allowed_updates": _UPDATES}
        if self._offset:
            params["offset"] = self._offset
        wait = seconds + self._patience.answer
        return await self._api.call("getUpdates", list[msgspec.Raw], params=params, wait=wait)

    async def _hand_over(self, updates: list[msgspec.Raw], reader: Reader, desk: Desk) -> None:
        """Give updates to `desk`, one after the other. One that cannot be read is left out, and the log says so."""
        for raw in updates:
            number = msgspec.json.decode(raw, type=Number).update_id
            try:
                update = msgspec.json.decode(raw, type=Update)
            except msgspec.DecodeError as error:
                log.warning("telegram %s: update %d is left out: %s", self._account, number, error)
                update = Update(number)
            self._note_move(update.message)
            arrival = reader.arrival(update)
            if arrival is not None:
                await desk.receive(arrival)
            self._offset = number + 1
            if update.callback_query is not None:
                await self._release(update.callback_query)

    async def _release(self, pressed: Pressed) -> None:
        """Tell Telegram that a button has worked, or it goes on turning; no harm is done when that fails."""
        try:
            params: dict[str, Value] = {"callback_query_id": pressed.id}
            await self._api.call("answerCallbackQuery", bool, params=params, wait=_TOAST)
        except ChannelError as error:
            log.info("telegram %s: a button was not released: %s", self._account, error)

    def _note_move(self, message: Message | None) -> None:
        if message is not None and message.migrate_to_chat_id:
            self._moves.note(str(message.chat.id), str(message.migrate_to_chat_id))
        elif message is not None and message.migrate_from_chat_id:
            self._moves.note(str(message.migrate_from_chat_id), str(message.chat.id))


def _reason(error: ChannelError | StoreError) -> str:
    """What the owner is told. Raises `RefusedError` when no patience helps."""
    if isinstance(error, StoreError):
        return f"what came in could not be stored: {error}"
    if not isinstance(error, ApiError):
        return str(error)
    if error.status in (401, 404):
        raise RefusedError("Telegram does not know this token", hint="Ask @BotFather for the token.") from None
    if error.status == 409 and error.tells("webhook"):
        return "a webhook is set for this bot: take it away with deleteWebhook, or use another bot"
    if error.status == 409:
        return "another program fetches the messages of this bot: stop it, or use another bot"
    return str(error)
