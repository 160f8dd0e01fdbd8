"""Claiming a conversation: the lease, and in the same transaction what there is to do under it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from limpet.assistant import archive, commands
from limpet.assistant.services import Services
from limpet.assistant.weigh import is_cold
from limpet.errors import LimpetError
from limpet.session import keys
from limpet.session.log import Log
from limpet.store import approvals, commits, entries, inbox, sessions, subagents, turns
from limpet.store.commits import TurnWriter
from limpet.store.sessions import Lease
from limpet.store.sql import Connection
from limpet.store.turns import TurnRow
from limpet.types.entry import Payload
from limpet.types.envelope import InboxRow, Trust
from limpet.types.event import Notice
from limpet.types.ids import new_id
from limpet.types.ports import Model
from limpet.types.profile import Profile

NEW_BY_ITSELF = {
    "idle": "[After this long pause a new conversation begins. The old one is kept, and so are your notes.]",
    "daily": "[A new day, a new conversation. The old one is kept, and so are your notes.]",
}


class StaleLogError(LimpetError):
    """The log has grown since it was read: read on and try again."""


class Claim(Struct, frozen=True):
    """What a claim found to do: resume `found`, run the turn just begun, called `made`, or the command in `row`."""

    lease: Lease
    made: str = ""
    found: TurnRow | None = None
    row: InboxRow | None = None
    idle: bool = False


async def claim(
    services: Services,
    key: str,
    model: Model,
    *,
    log: Log,
    writer: Callable[[Connection, Lease, str], TurnWriter],
) -> Claim:
    """Take the lease of the session under `key` and find or begin what there is to do.

    A conversation that is over by the owner's rules (`resets`) ends with the message that waits, which begins the next
    one. Raises `LeaseHeldError`, `StaleLogError`.
    """
    over, reason = _over(services, key)
    known = Log() if over else log
    before = _before(services, key, known, profile=model.profile, over=over)
    now, name = services.clock.now(), new_id("t")
    taken: list[Lease] = []

    def work(connection: Connection) -> Claim:
        session = sessions.open_live(connection, key, agent=services.agent, now=now)
        taken.append(sessions.claim(connection, session.id, owner=services.owner))
        if session.id == over and _may_end(connection, over, key=key):
            sessions.end(connection, taken[0], reason=reason, now=now)
            if reason == keys.EACH_RUN:
                sessions.owe_nothing(connection, over)
            fresh = sessions.open_live(connection, key, agent=services.agent, now=now)
            taken.append(sessions.claim(connection, fresh.id, owner=services.owner))
            sessions.set_model(connection, taken[1], session.model)
        lease = taken[-1]
        if entries.last_seq(connection, lease.session) != known.last_seq:
            raise StaleLogError("The log has grown.")
        return _begin(connection, writer(connection, lease, name), before, now=now, answering=services.owner.answering)

    try:
        found = await services.store.write(work)
    except BaseException:
        services.owner.held.difference_update(lease.session for lease in taken)
        raise
    services.owner.held.difference_update(lease.session for lease in taken[:-1])
    if len(taken) > 1 and reason != keys.EACH_RUN:
        services.emit(Notice(NEW_BY_ITSELF[reason]))
    return found


def _begin(
    connection: Connection,
    writer: TurnWriter,
    told: tuple[Sequence[Payload], Trust],
    *,
    now: int,
    answering: Collection[int],
) -> Claim:
    """Resume the turn that a dead process left, or begin with what waits in the inbox.

    Nothing is done while the next in line is one of `answering`: a command that another task runs right now.
    """
    lease, (before, trust) = writer.lease, told
    found = turns.live(connection, lease.session)
    if found is not None and is_waiting(connection, found, now=now):
        sessions.release(connection, lease)
        return Claim(lease, idle=True)
    if found is not None:
        resumed = TurnWriter(lease=lease, turn=found.id, key=writer.key, render=writer.render)
        commits.resume(connection, resumed, before, now=now, trust=trust)
        return Claim(lease, found=found)
    rows = inbox.queued(connection, writer.key)
    if rows and rows[0].id in answering:
        sessions.release(connection, lease)
        return Claim(lease, idle=True)
    if rows and commands.find(rows[0].inbound.text):
        return Claim(lease, row=rows[0])
    made = commits.begin(connection, writer, before, now=now, trust=trust)
    if not made:
        sessions.release(connection, lease)
    return Claim(lease, made=writer.turn if made else "", idle=not made)


def is_waiting(connection: Connection, turn: TurnRow, *, now: int) -> bool:
    """Whether a turn can only go on after its owner has decided something."""
    if turn.state != "waiting" or turn.stop_requested:
        return False
    return not approvals.is_ready(connection, turn.id, now=now)


def _over(services: Services, key: str) -> tuple[str, str]:
    """The live session that is to end before the message that waits, and why; empty when it goes on."""
    live = services.store.read(lambda connection: sessions.live(connection, key))
    if live is None:
        return "", ""
    if keys.stands_alone(key):
        reason = keys.EACH_RUN if services.store.read(lambda connection: _is_used(connection, live.id)) else ""
    else:
        reason = services.rules.resets(key, live.updated, services.clock.now())
    if not reason:
        return "", ""
    ends = services.store.read(lambda connection: _may_end(connection, live.id, key=key))
    return (live.id, reason) if ends else ("", "")


def _is_used(connection: Connection, session: str) -> bool:
    return entries.last_seq(connection, session) > 0


def _may_end(connection: Connection, session: str, *, key: str) -> bool:
    """Whether nothing runs in a session, and a message waits that its successor can begin with. What a helper has found
    belongs where it was asked for."""
    rows = inbox.queued(connection, key)
    if not rows or commands.find(rows[0].inbound.text) or subagents.is_about(rows[0]):
        return False
    return turns.live(connection, session) is None


def _before(services: Services, key: str, log: Log, *, profile: Profile, over: str) -> tuple[Sequence[Payload], Trust]:
    """What goes into the log ahead of the user's words: a new snapshot when one is due, else what changed. And how far
    that is trusted.

    `over` is the session that ends with this message.
    """
    prompting = services.prompting
    reason = _snapshot_reason(services, key, log, profile=profile)
    if not reason:
        return prompting.changes(log.prompt, log.told) if log.prompt else (), "owner"
    if keys.stands_alone(key):
        return (prompting.snapshot(profile, reason=reason, key=key),), "owner"  # each run stands alone
    before = archive.summary_before(services.store, key, ending=over)
    return (prompting.snapshot(profile, reason=reason, before=before.text, key=key),), before.trust


def _snapshot_reason(services: Services, key: str, log: Log, *, profile: Profile) -> str:
    """Why the prompt has to be made anew; empty when the snapshot holds."""
    if log.prompt is None:
        return "new session"
    if log.prompt.model != profile.reference:
        return f"model is now {profile.reference}"
    if services.rules.refresh_when_cold and is_cold(log, profile, services.clock.now(), key=key):
        return "files changed while the cache was cold" if services.prompting.changes(log.prompt, log.told) else ""
    return services.prompting.stale(log.prompt)
