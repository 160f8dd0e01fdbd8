"""What happens when a conversation has ended: its notes, an excerpt of its last messages, and a summary.

The session ends in one commit and its successor can begin at once; this work follows when nobody waits for an answer.
It is marked in the session's row until it is done, so a process that dies leaves it to the next one.
"""

from __future__ import annotations

import logging

from limpet.assistant import flush
from limpet.assistant.archive import by_rules
from limpet.assistant.digest import Digest, Material, UselessDigestError, digest
from limpet.assistant.inquiry import inquiry_with
from limpet.assistant.services import Services
from limpet.assistant.turn import session_sampling
from limpet.assistant.view import next_request
from limpet.assistant.weigh import is_cold
from limpet.errors import LeaseError, ModelError, UserError, WorkspaceError
from limpet.session.excerpt import excerpt
from limpet.session.log import Log
from limpet.session.room import room_of
from limpet.store import entries, sessions
from limpet.store.sessions import Lease, SessionRow
from limpet.types.event import Notice
from limpet.types.hook import SessionEnded

log = logging.getLogger(__name__)

TRIES = 3
"""Times that a model is asked for the notes of one session; then it is closed with what rules alone can say."""


async def close_ended(services: Services, key: str) -> int:
    """Write what the ended sessions of `key` still owe; how many were closed."""
    closed = 0
    for row in services.store.read(lambda connection: sessions.closing(connection, key)):
        try:
            lease = await services.store.write(
                lambda connection, row=row: sessions.claim(connection, row.id, owner=services.owner)
            )
        except LeaseError:
            continue  # another process does it
        try:
            if row.closing == 1 and services.hooks is not None:
                await services.hooks.tell(SessionEnded(row.id, key, row.end_reason))
            closed += await _close(services, row, lease)
        except LeaseError:
            continue
        finally:
            services.owner.held.discard(row.id)
    return closed


async def _close(services: Services, row: SessionRow, lease: Lease) -> bool:
    ended = Log(services.store.read(lambda connection: entries.load(connection, row.id)), cache_key=row.cache_key)
    if not (await _save_excerpt(services, row, ended) and await flush.make_up(services, ended)):
        await services.store.write(lambda connection: sessions.count_closing(connection, lease))
        return False
    try:
        found = await _digest(services, row, ended)
    except (ModelError, UserError, UselessDigestError) as error:
        log.warning("No summary of the ended session %s: %s", row.id, error.present())
        if row.closing < TRIES:
            await services.store.write(lambda connection: sessions.count_closing(connection, lease))
            return False
        found = Digest((), by_rules(ended))
    written = await _flush(services, row, lease, ended=ended, found=found)
    if not written or not await _remember(services, row, summary=found.summary, ended=ended):
        await services.store.write(lambda connection: sessions.count_closing(connection, lease))
        return False
    await services.store.write(lambda connection: sessions.close(connection, lease, summary=found.summary))
    return True


async def _flush(services: Services, row: SessionRow, lease: Lease, *, ended: Log, found: Digest) -> bool:
    """Bring the notes of `found` into the file, once; whether they are there."""
    waiting = flush.unflushed(ended.path(), "")
    if not waiting:
        return True
    _, visible = ended.visible()
    now, trust = services.clock.now(), flush.trust_of([*waiting, *visible])
    made = flush.flush_of(services, found.notes, trust=trust, upto=ended.leaf, key=row.key, session=row.id)
    await services.store.write(
        lambda connection: entries.append(connection, lease, made, turn="", now=now, trust=trust)
    )
    return not await flush.write(services, made)


async def _save_excerpt(services: Services, row: SessionRow, ended: Log) -> bool:
    line = ended.path()
    at = row.ended or services.clock.now()
    text = excerpt(line, title=f"End of the conversation {row.id}")
    if not text:
        return True
    try:
        file = services.notes.excerpt_file(at, row.id, flush.trust_of(line), key=row.key)
        await services.notes.keep(file, text)
    except WorkspaceError as error:
        if row.closing & (row.closing - 1) == 0:  # the first time, then ever more rarely
            services.emit(Notice(f"The excerpt of a conversation is not written: {error.present()}", level="warning"))
        return False
    return True


async def _remember(services: Services, row: SessionRow, *, summary: str, ended: Log) -> bool:
    """Add what the conversation was about to the history that people and the agent can search."""
    trust = flush.trust_of(ended.path())
    try:
        await services.notes.remember(row.ended or services.clock.now(), row.id, text=summary, trust=trust, key=row.key)
    except WorkspaceError as error:
        services.emit(Notice(f"The history is not written: {error.present()}", level="warning"))
        return False
    return True


async def _digest(services: Services, row: SessionRow, ended: Log) -> Digest:
    appointed = await services.model_for("summary", chat=row.model)
    profile = appointed.model.profile
    previous, visible = ended.visible()
    material = flush.to_read(visible, flush.unflushed(ended.path(), ""))
    warm = profile.cache_ttl > 0 and not is_cold(ended, profile, services.clock.now(), key=row.key)
    live = None
    if warm and ended.prompt is not None and ended.prompt.model == profile.reference:
        sampling = session_sampling(services, row.id, profile)
        live = next_request(ended, key=row.key, session=row.id, sampling=sampling)
    inquiry = inquiry_with(services, appointed.model, row.id)
    return await digest(inquiry, Material(material, previous=previous, live=live), room_of(profile.window))
