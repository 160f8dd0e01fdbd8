"""Forks, labels and moves in the tree of a session on which nobody works: for the command line and the page."""

from __future__ import annotations

from limpet.assistant.services import Services
from limpet.session import branch
from limpet.store import entries, forks, removal, sessions
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection
from limpet.types.entry import Payload


async def append(services: Services, row: SessionRow, payload: Payload) -> None:
    """Append a fact to a session on which nobody works. Raises `InputError`."""
    now, owner = services.clock.now(), services.owner

    def work(connection: Connection) -> None:
        removal.check_idle(connection, row.id, owner=owner)
        lease = sessions.claim(connection, row.id, owner=owner)
        entries.append(connection, lease, payload, turn="", now=now)
        sessions.release(connection, lease)

    try:
        await services.store.write(work)
    finally:
        owner.held.discard(row.id)


async def fork(services: Services, row: SessionRow, leaf: str, *, key: str) -> str:
    """Copy a session up to its entry `leaf` into a new one under `key`; gives its id. Raises `InputError`."""
    log = services.store.read(lambda connection: entries.load(connection, row.id))
    line, now = branch.line_with_labels(log, leaf), services.clock.now()
    return await services.store.write(lambda connection: forks.fork(connection, row, line, key=key, now=now))
