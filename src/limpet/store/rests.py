"""Rests: credentials and services of models that are left alone for a while, seen by every process of the home."""

from __future__ import annotations

from msgspec import convert

from limpet.store.driver import Store
from limpet.store.sql import Connection


class StoredRests:
    """Implements the `Rests` port."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def look(self, name: str) -> tuple[int, str]:
        def work(connection: Connection) -> tuple[int, str]:
            row = connection.execute("SELECT until, reason FROM rests WHERE name = ?", (name,)).fetchone()
            return (0, "") if row is None else convert(row, tuple[int, str])

        return self._store.read(work)

    async def rest(self, name: str, *, until: int, reason: str) -> None:
        def work(connection: Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO rests VALUES (?, ?, ?)", (name, until, reason[:500]))

        await self._store.write(work)
