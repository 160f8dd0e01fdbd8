"""Reading the database from a command, and the session that somebody means."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import apsw
import msgspec

from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.errors import InputError
from limpet.store import sessions
from limpet.store.driver import check_version, explain
from limpet.store.migrations import MIGRATIONS
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection


@contextmanager
def reading(invocation: Invocation) -> Generator[Connection | None]:
    """The database of the home, read-only; None when there is none yet. Raises `StoreError`.

    One of an older version is brought up to date first, for which no event loop may run.
    """
    path = invocation.home().database
    if not path.exists():
        yield None
        return
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(10_000)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error as error:
        raise explain(error, str(path)) from error
    try:
        version = _version(connection)
        check_version(version, str(path))
        if 0 < version < len(MIGRATIONS):
            change(invocation.home(), _version)
        yield connection if version else None  # an empty file: nothing was ever written
    except apsw.Error as error:
        raise explain(error, str(path)) from error
    finally:
        connection.close()


def _version(connection: Connection) -> int:
    return msgspec.convert(connection.execute("PRAGMA user_version").fetchone(), tuple[int])[0]


def find(connection: Connection | None, name: str) -> SessionRow:
    """The session that `name` means: a key, a name, an id or the beginning of one. Raises `InputError`."""
    if connection is not None:
        for key in (name, f"agent:main:{name}", f"agent:main:cli:{name}"):
            if row := sessions.live(connection, key):
                return row
            if ended := sessions.under(connection, key):
                return ended[-1]
        found = [row for row in sessions.recent(connection, limit=1_000_000) if row.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"{name} is the beginning of {len(found)} sessions.", hint="Give more of the id.")
    raise InputError(f"There is no session {name}.", hint="`limpet sessions list` shows them.")
