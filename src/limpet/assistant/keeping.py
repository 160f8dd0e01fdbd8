"""Keeping: what is older than the owner wants it goes, conversations into an archive first (FEATURES C6)."""

from __future__ import annotations

import logging
from pathlib import Path

from msgspec import Struct

from limpet.assistant.services import Keeping, Services
from limpet.errors import InputError, LimpetError
from limpet.session import erase, keep, keys, search
from limpet.store import blobs, chores, entries, removal, sessions
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection

log = logging.getLogger(__name__)

DAY = 86_400_000
"""Milliseconds."""


class Records(Struct, frozen=True):
    """Where conversations are. `archive` is the folder for what is deleted, empty: it is not archived."""

    store: Store
    owner: Owner
    blobs: str
    archive: str = ""


class Due(Struct, frozen=True):
    """What is too old: ended conversations, runs of jobs, and archives."""

    sessions: tuple[SessionRow, ...]
    archives: tuple[Path, ...]


async def once_a_day(services: Services) -> None:
    """Let go what is too old, unless that was done within a day.

    A boundary: what goes wrong is logged, nobody waits for this.
    """
    keeping, now = services.rules.keeping, services.clock.now()
    if not (keeping.sessions or keeping.archives or keeping.rows or keeping.runs):
        return
    if not services.store.read(lambda connection: chores.due(connection, "keeping", now=now, every=DAY)):
        return
    if not await services.store.write(lambda connection: chores.take_on(connection, "keeping", now=now, every=DAY)):
        return  # another process does it
    try:
        records = Records(services.store, services.owner, keeping.blobs, keeping.archive)
        await prune(records, keeping, now=now)
    except (LimpetError, OSError) as error:
        log.warning("Old conversations were not let go: %s", error)


def due(connection: Connection, keeping: Keeping, *, now: int) -> Due:
    """What `prune` would let go. Conversations that still owe their notes stay."""
    old = sessions.ended_before(connection, now - keeping.sessions * DAY) if keeping.sessions else []
    runs = sessions.runs_before(connection, now - keeping.runs * DAY) if keeping.runs else []
    archives = keep.old_archives(keeping.archive, before=now - keeping.archives * DAY) if keeping.archives else []
    return Due(tuple({row.id: row for row in (*old, *runs)}.values()), tuple(archives))


async def prune(records: Records, keeping: Keeping, *, now: int) -> int:
    """Archive and delete what is too old; how many conversations and archives went.

    Raises `StoreError` when one cannot be archived.
    """
    gone = 0
    found = records.store.read(lambda connection: due(connection, keeping, now=now))
    for row in found.sessions:
        try:
            setting = "schedule.keep_days" if keys.kind_of(row.key) == "cron" else "sessions.keep_days"
            await delete(records, row, now=now, why=f"older than {setting}")
            gone += 1
        except InputError as error:
            log.warning("%s stays for now: %s", row.id, error)
    if gone:
        await sweep(records.store)
    for path in found.archives:
        path.unlink(missing_ok=True)
    if keeping.rows:
        await records.store.write(lambda connection: removal.drop_old_rows(connection, before=now - keeping.rows * DAY))
    return gone + len(found.archives)


async def delete(records: Records, row: SessionRow, *, now: int, why: str) -> tuple[str, erase.Removed]:
    """Delete a conversation, after it was archived where there is an archive; gives the path in it.

    Raises `InputError` while somebody works on it, `StoreError` when the archive cannot be written.
    """
    store, owner = records.store, records.owner
    store.read(lambda connection: removal.check_idle(connection, row.id, owner=owner))
    held = store.read(lambda connection: entries.load(connection, row.id))
    path = keep.archive(records.archive, row, held) if records.archive else ""

    def work(connection: Connection) -> erase.Removed:
        if entries.last_seq(connection, row.id) != len(held):
            raise InputError(f"{row.id} goes on just now; nothing was deleted.")
        return erase.delete(connection, row.id, owner=owner, now=now, why=why)

    removed = await store.write(work)
    blobs.remove(records.blobs, removed.blobs)
    return path, removed


async def sweep(store: Store) -> bool:
    """Take what was deleted off the disk; False when old pages stay in the write-ahead log for now."""
    await store.write(search.compact)
    return await store.scrub()
