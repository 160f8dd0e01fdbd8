"""What stands on the stage: conversations, memories, jobs, spending."""

from __future__ import annotations

from pathlib import Path

from limpet.gateway.gateway import Gateway


async def lay_out(gateway: Gateway, home: Path) -> None:
    """Fill the home before anybody looks."""
