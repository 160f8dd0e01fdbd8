"""The flush: what is worth remembering goes into the day's notes before a part of the log leaves the context.

The intent is an entry with the lines, committed before the file is touched; the file only takes lines that it does not
hold yet, so doing it again after a crash changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.services import Services
from limpet.errors import WorkspaceError
from limpet.session.log import Log
from limpet.types.entry import Entry, Flush
from limpet.types.envelope import Trust, lowest
from limpet.types.event import Notice


def unflushed(line: Sequence[Entry], until: str) -> list[Entry]:
    """The entries of a path from behind the newest flush that succeeded up to and without the entry `until`."""
    places = {entry.id: place for place, entry in enumerate(line)}
    done = [
        places.get(entry.payload.upto, -1)
        for entry in line
        if isinstance(entry.payload, Flush) and not entry.payload.error
    ]
    start = max(done, default=-1) + 1
    return list(line[start : places.get(until, len(line))])


def flush_of(services: Services, notes: Sequence[str], entries: Sequence[Entry], *, upto: str) -> Flush:
    """The flush entry for `notes` that were made of `entries`."""
    at = services.clock.now()
    return Flush(
        upto=upto,
        path=services.notes.file(at, trust_of(entries)) if notes else "",
        lines=tuple(f"- {' '.join(note.split())}" for note in notes),
    )


def trust_of(entries: Sequence[Entry]) -> Trust:
    """What is made of these entries is trusted as little as the least trusted of them."""
    return lowest(entry.trust for entry in entries)


async def write(services: Services, flush: Flush) -> None:
    """Bring the lines of `flush` into its file. The owner is told when that cannot be done; the log has them."""
    if not flush.lines:
        return
    try:
        await services.notes.append(flush.path, flush.lines)
    except WorkspaceError as error:
        services.emit(Notice(f"Notes could not be written: {error.present()}", level="warning"))


async def catch_up(services: Services, log: Log) -> None:
    """Write the newest flush again: its process may have died between the commit and the file."""
    for entry in reversed(log.entries):
        if isinstance(entry.payload, Flush):
            await write(services, entry.payload)
            return
