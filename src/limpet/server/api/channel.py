"""The channel `api`: what programs are told stays in the outbox, from where their requests are answered."""

from __future__ import annotations

import asyncio

from limpet.channels.fixed import Fixed
from limpet.config.channels import ChannelSettings
from limpet.gateway.programs import ACCOUNT, CHANNEL
from limpet.types.channel import ALL, Desk, Piece, Traits

SETTINGS = ChannelSettings(direct="disabled", live=False, reactions=False)


class ApiChannel(Fixed):
    """Implements the port `Channel`."""

    name = CHANNEL
    account = ACCOUNT
    traits = Traits(
        markup="markdown",
        limit=ALL,
        upload=ALL,
        caption=ALL,
        lost_on_5xx=False,
        repeatable=True,
        needs_link=False,
    )

    async def run(self, desk: Desk) -> None:
        desk.up()
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Nothing is held."""

    async def send(self, piece: Piece) -> str:
        return piece.key
