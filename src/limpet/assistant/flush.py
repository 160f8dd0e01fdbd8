"""The flush: what is worth remembering goes into the day's notes before a part of the log leaves the context.

The intent is an entry with the lines, committed before the file is touched; the file only takes lines that it does not
hold yet, so doing it again after a crash changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from limpet.assistant.memory_scope import scope_of_file
from limpet.assistant.remembering import Remembering
from limpet.assistant.services import Services
from limpet.errors import WorkspaceError
from limpet.memory.entries import marked
from limpet.session.log import Log
from limpet.types.entry import Compaction, Entry, Flush, PromptEntry
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


def to_read(part: Sequence[Entry], waiting: Sequence[Entry]) -> list[Entry]:
    """What a digest is made of: a part of the log, or where more than it still waits for its flush, that.

    What Limpet has made of earlier parts is left out: a digest is given the summary before it.
    """
    longer = part if len(part) >= len(waiting) else waiting
    return [entry for entry in longer if not isinstance(entry.payload, Compaction | Flush)]


def flush_of(services: Services, notes: Sequence[str], *, trust: Trust, upto: str, key: str, session: str) -> Flush:
    """The flush entry for `notes` that were made of what `session` (its id) under `key` holds and is trusted so far."""
    at = services.clock.now()
    told = f"{services.memory.local(at):%Y-%m-%d %H:%M}"
    return Flush(
        upto=upto,
        path=services.notes.file(at, trust, key=key) if notes else "",
        lines=tuple(marked(note, at=told, source=session, trust=_shown(trust)) for note in notes),
    )


def trust_of(entries: Sequence[Entry]) -> Trust:
    """What is made of these entries is trusted as little as the least trusted of them.

    Prompts are left out: else a stranger's page would follow the owner from conversation to conversation for ever.
    """
    return lowest(entry.trust for entry in entries if not isinstance(entry.payload, PromptEntry))


def _shown(trust: Trust) -> Trust:
    """Of the trust of a note only what keeps it out of prompts is told in it."""
    return "external" if trust == "external" else "owner"


async def write(services: Services, flush: Flush) -> str:
    """Bring the lines of `flush` into its file; why that could not be done. The owner is told, and the log has them."""
    if not flush.lines:
        return ""
    try:
        known = Remembering(services, "", scope=scope_of_file(flush.path))
        if hunk := known.book.adding(flush.path, flush.lines):
            name = hashlib.sha256("\n".join((flush.path, flush.upto, *flush.lines)).encode()).hexdigest()
            await known.record((hunk,), source="flush", key=f"flush:{name}")
        await services.notes.append(flush.path, flush.lines)
    except WorkspaceError as error:
        services.emit(Notice(f"Notes could not be written: {error.present()}", level="warning"))
        return error.present()
    return ""


async def make_up(services: Services, log: Log) -> bool:
    """Write what could not be written before, now that the conversation has ended; whether all of it is written."""
    await catch_up(services, log)
    failed = [one.payload for one in log.entries if isinstance(one.payload, Flush) and one.payload.error]
    return not any([await write(services, one) for one in failed])


async def catch_up(services: Services, log: Log) -> None:
    """Write the newest flush again where its process may have died between the commit and the file.

    Where its compaction follows, the file was written: lines that the owner has deleted since stay deleted.
    """
    following = None
    for entry in reversed(log.entries):
        if isinstance(entry.payload, Flush):
            if not isinstance(following, Compaction):
                await write(services, entry.payload)
            return
        following = entry.payload
