"""Platforms on which what was said stands as it is: nothing changes, nobody is seen typing, there is no menu."""

from __future__ import annotations

from limpet.errors import RefusedError
from limpet.types.channel import MenuEntry, Piece
from limpet.types.envelope import Address


class Fixed:
    """The part of the port `Channel` that such a platform does not have."""

    async def edit(self, piece: Piece, message: str) -> None:
        raise RefusedError("What was sent cannot be changed here.")

    async def remove(self, address: Address, message: str) -> None:
        raise RefusedError("What was sent cannot be taken back here.")

    async def typing(self, address: Address) -> None:
        """Nobody would see it."""

    async def react(self, address: Address, message: str, emoji: str) -> None:
        """As above."""

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        """As above."""
