"""Writing to the database of the home from a command that needs no assistant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from limpet.config.paths import Home
from limpet.store import audit
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sql import Connection

T = TypeVar("T")


def note(home: Home, act: audit.Act, subject: str, *, detail: str = "") -> None:
    """Add a row to the audit; before there is a database there is nothing to watch over. Raises `StoreError`."""
    if home.database.exists():
        now = time.time_ns() // 1_000_000
        change(home, lambda connection: audit.append(connection, act, subject, detail=detail, now=now))


def change(home: Home, work: Callable[[Connection], T]) -> T:
    """What `work` gives, after it was committed. The database must be there. Raises `StoreError`."""
    return asyncio.run(_change(home, work))


async def _change(home: Home, work: Callable[[Connection], T]) -> T:
    owner = Owner(str(home.run))
    try:
        store = Store.open(str(home.database), process=owner.name)
        try:
            return await store.write(work)
        finally:
            await store.close()
    finally:
        owner.close()
