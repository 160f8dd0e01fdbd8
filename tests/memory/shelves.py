"""A workspace, a database of sessions and the index over both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from limpet.memory.index import EVERYTHING, Within
from limpet.memory.search import MIN_SCORE, Result, Wanted, find
from limpet.memory.shelf import Shelf
from limpet.memory.sources import Talks
from limpet.store import entries, sessions
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.types.content import Text
from limpet.types.entry import UserEntry
from limpet.types.envelope import Trust
from limpet.types.message import UserMessage

TODAY = date(2026, 5, 13)
NOW = 1_778_659_200_000
"""That day, in UTC milliseconds."""


def local(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def shelf_of(folder: Path) -> Shelf:
    return Shelf(str(folder / "index"), str(folder / "workspace"), Talks(str(folder / "limpet.db"), "main", local))


def write(folder: Path, path: str, text: str) -> None:
    file = folder / "workspace" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def say(folder: Path, key: str, texts: Sequence[str], *, trust: Trust = "owner") -> str:
    """Store messages of the owner in the session under `key`; its id."""

    async def main() -> str:
        store, owner = Store.open(str(folder / "limpet.db"), process="test"), Owner(str(folder / "run"))
        try:
            row = await store.write(lambda c: sessions.open_live(c, key, agent="main", now=NOW))
            lease = await store.write(lambda c: sessions.claim(c, row.id, owner=owner))
            for text in texts:
                entry = UserEntry(UserMessage((Text(text),)))
                await store.write(lambda c, entry=entry: entries.append(c, lease, entry, turn="", now=NOW, trust=trust))
            return row.id
        finally:
            owner.close()
            await store.close()

    return asyncio.run(main())


def ask(
    shelf: Shelf, question: str, *, most: int = 6, min_score: float = MIN_SCORE, within: Within = EVERYTHING
) -> list[Result]:
    return shelf.run(lambda index: find(index, question, Wanted(most, min_score, within), today=TODAY))


def texts(results: Sequence[Result]) -> list[str]:
    return [result.text for result in results]
