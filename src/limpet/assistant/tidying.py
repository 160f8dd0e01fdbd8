"""Tidying up after conversations: what nobody waits for. Ended early, the next time does the rest."""

from __future__ import annotations

from limpet.assistant import consolidate, ending, keeping
from limpet.assistant.services import Services


async def tidy(services: Services, key: str) -> None:
    """Write the notes that ended conversations under `key` still owe, keep house once a day, consolidate when due."""
    await ending.close_ended(services, key)
    await keeping.once_a_day(services)
    await consolidate.when_due(services, key)
