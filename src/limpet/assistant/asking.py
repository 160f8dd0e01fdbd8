"""Asking the owner: what waits under a session key is shown to the person at hand, one after the other."""

from __future__ import annotations

import asyncio

from limpet.assistant import approvals
from limpet.assistant.services import Services
from limpet.errors import InputError, TurnStopped
from limpet.store import approvals as rows
from limpet.store import inbox, turns
from limpet.store.sql import Connection
from limpet.types.approval import Approval, Reply
from limpet.types.event import Notice

LOOK_AGAIN = 1.0
"""Seconds between two looks at what another process may have decided."""
HOW = "[{id} waits for your word: {plan} ({reason}) Here: {here}. In a shell: limpet approvals show {id}]"


async def ask_next(services: Services, key: str) -> bool:
    """Have the oldest open approval under `key` decided, here or elsewhere; True when there may be something to do.

    False: nothing waits for a word, or nobody gives one for now; how it can be given is said.
    """
    waiting = open_under(services, key)
    if not waiting:
        return False
    first = waiting[0]
    if services.approvals.can_ask:
        return await _ask(services, first)
    others = {one.process for one in waiting if one.process} - {services.owner.name}
    if any(services.owner.alive(process) for process in others):
        await services.nudges.wait(LOOK_AGAIN)
        return True
    for one in waiting:
        services.emit(Notice(how_to_decide(one), level="warning"))
    return False


def open_under(services: Services, key: str) -> list[Approval]:
    """What waits for a word under a session key, oldest first."""
    now = services.clock.now()
    return services.store.read(lambda connection: rows.open_under(connection, key, now=now))


def how_to_decide(approval: Approval) -> str:
    """What waits and how it is decided, in a line."""
    name, wanted = approval.id, approval.wanted
    if wanted.kind == "question":
        here = f"/answer {name} TEXT or /deny {name}"
    else:
        here = f"/approve {name}, /approve {name} always or /deny {name}"
    return HOW.format(id=name, plan=wanted.plan, reason=wanted.reason, here=here)


async def stop(services: Services, key: str, *, waits: int = 0) -> bool:
    """Ask what runs or waits under `key` to stop, and settle what waits for a word as denied; whether there is one.

    With `waits` only for the sake of that inbox row: nothing happens once the turn has taken it.
    """
    now = services.clock.now()

    def work(connection: Connection) -> bool:
        if waits and ((row := inbox.find(connection, waits)) is None or row.state != "queued"):
            return False
        rows.deny_under(connection, key, by="stop", now=now)
        return turns.request_stop(connection, key)

    found = await services.store.write(work)
    services.nudges.send()
    return found


async def _ask(services: Services, approval: Approval) -> bool:
    """Ask the person here; whoever decides first, here or elsewhere, has decided."""
    await services.store.write(lambda connection: rows.show(connection, approval.id, process=services.owner.name))
    question = asyncio.create_task(services.approvals.ask(approval))
    elsewhere = asyncio.create_task(_settled(services, approval))
    try:
        await asyncio.wait((question, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if not question.done():
            return True
        reply = question.result()
    except TurnStopped:
        return await stop(services, approval.key)
    finally:
        for task in (question, elsewhere):
            task.cancel()
        await asyncio.gather(question, elsewhere, return_exceptions=True)
    if reply is not None:
        return await _decide(services, approval, reply)
    await services.store.write(lambda connection: rows.show(connection, approval.id, process=""))
    services.emit(Notice(how_to_decide(approval)))
    return False


async def _decide(services: Services, approval: Approval, reply: Reply) -> bool:
    """Settle it by the word of whoever sits here; what cannot be is told, and asked again if it is still open."""
    try:
        await approvals.decide(services, approval.id, reply, who=approvals.TERMINAL)
    except InputError as error:
        services.emit(Notice(error.present(), level="warning"))
    return True


async def _settled(services: Services, approval: Approval) -> None:
    """Return when it is settled, or too old."""
    while approval.id in {one.id for one in open_under(services, approval.key)}:
        await services.nudges.wait(LOOK_AGAIN)
