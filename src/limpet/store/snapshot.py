"""Copies of databases while others write to them, and whether a database is whole."""

# apsw's stubs name a type that Python 3.11 has not:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager

import apsw
from msgspec import convert

from limpet.store.driver import BUSY_PATIENCE, explain


def copy(path: str, target: str) -> None:
    """Write the database at `path`, as it is at one moment, to the new file `target`. Raises `StoreError`."""
    try:
        with reading(path) as connection:
            connection.execute("VACUUM INTO ?", (target,))
    except apsw.Error as error:
        raise explain(error, path) from error


def faults(path: str, *, most: int = 5) -> list[str]:
    """What SQLite finds wrong with the database at `path`; nothing when it is whole. Raises `apsw.Error` when it cannot
    be read at all.
    """
    with reading(path) as connection:
        rows = convert(connection.execute(f"PRAGMA quick_check({most})").fetchall(), list[tuple[str]])
    return [said for (said,) in rows if said != "ok"]


def schema(path: str) -> int:
    """The schema's version of the database at `path`. Raises `apsw.Error`."""
    with reading(path) as connection:
        return convert(connection.execute("PRAGMA user_version").fetchall(), list[tuple[int]])[0][0]


@contextmanager
def reading(path: str) -> Generator[apsw.Connection]:
    """The database at `path`, read-only, whoever writes to it."""
    with closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(BUSY_PATIENCE)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        yield connection
