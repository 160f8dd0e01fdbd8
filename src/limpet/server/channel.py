"""The channel `web`: chats over the WebSocket.

Messages stay in the outbox and are fetched from there by a cursor, so that sending one is only making it known: nobody
has to be connected. The event id is the key that the client gives its message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from limpet.channels.fixed import Fixed
from limpet.config.channels import ChannelSettings
from limpet.errors import NotReadyError
from limpet.types.channel import ALL, Arrival, Desk, File, Piece, Traits
from limpet.types.envelope import Address

NAME, ACCOUNT = "web", "main"
OWNER = "owner"
"""Who speaks: whoever has the token is the owner."""
SETTINGS = ChannelSettings(owners=(OWNER,), live=False, reactions=False)


class WebChannel(Fixed):
    """Implements the port `Channel`."""

    name = NAME
    account = ACCOUNT
    traits = Traits(
        markup="markdown",
        limit=ALL,
        buttons=True,
        upload=ALL,
        caption=ALL,
        lost_on_5xx=False,
        repeatable=True,
        needs_link=False,
    )

    def __init__(self) -> None:
        self._desk: Desk | None = None

    async def run(self, desk: Desk) -> None:
        self._desk = desk
        desk.up()
        try:
            await asyncio.Event().wait()
        finally:
            self._desk = None

    async def say(self, chat: str, text: str, key: str, *, files: Sequence[File] = ()) -> None:
        """The owner says something. Raises `StoreError`, `NotReadyError` while the gateway begins or ends."""
        if self._desk is None:
            raise NotReadyError("The gateway takes nothing right now.")
        await self._desk.receive(Arrival(address(chat), key, OWNER, text, files=tuple(files)))

    async def close(self) -> None:
        """Nothing is held."""

    async def send(self, piece: Piece) -> str:
        return piece.key


def address(chat: str) -> Address:
    return Address(NAME, ACCOUNT, chat)
