"""The audit: a chain of hashes for each process, in which every change of a row shows."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from limpet.store import audit
from limpet.store.driver import Store
from limpet.store.sql import Connection


def written(folder: Path) -> Path:
    """The rows of two processes, in turns."""

    async def main() -> None:
        one, two = (Store.open(str(folder / "limpet.db"), process=name) for name in ("one", "two"))
        for at, store in enumerate((one, two, one, one, two)):
            await store.write(lambda c, at=at: audit.append(c, "secret.changed", f"KEY{at}", now=at))
        await one.close()
        await two.close()

    asyncio.run(main())
    return folder / "limpet.db"


def faults(path: Path) -> list[str]:
    store = Store.open(str(path), process="reader")
    try:
        return store.read(audit.faults)
    finally:
        asyncio.run(store.close())


def test_untouched_chains_hold(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert faults(path) == []
    rows = sqlite3.connect(path).execute("SELECT chain, seq FROM audit ORDER BY id").fetchall()
    assert rows == [("one", 1), ("two", 1), ("one", 2), ("one", 3), ("two", 2)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET subject = 'KEY9' WHERE id = 3",
        "UPDATE audit SET at = 7 WHERE id = 1",
        "UPDATE audit SET seq = 'x', hash = 'zz' WHERE id = 4",
        "UPDATE audit SET subject = x'00' WHERE id = 5",
        "UPDATE audit SET detail = 'x', hash = 'y' WHERE id = 2",
        "DELETE FROM audit WHERE id = 3",
        "DELETE FROM audit WHERE id = 1",
        "DELETE FROM audit WHERE chain = 'one'",
        "UPDATE audit SET chain = 'three' WHERE chain = 'two'",
    ],
)
def test_every_change_shows(tmp_path: Path, change: str) -> None:
    path = written(tmp_path)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    assert faults(path)


def test_a_row_is_written_with_what_it_tells_of_or_not_at_all(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "limpet.db"), process="one")

        def fails(connection: Connection) -> None:
            audit.append(connection, "trust.once", "s1", now=1)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await store.write(fails)
        assert store.read(audit.head) is None
        await store.close()

    asyncio.run(main())
