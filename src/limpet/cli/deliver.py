"""Delivery to the terminal: the outbox parts of a session, each shown once, in order.

Each process is a thread of its own in the chat, so that two terminals on one session do not take each other's answers.
What was meant for a terminal that is gone is shown by the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from limpet.assistant.services import Services
from limpet.store import outbox
from limpet.types.envelope import Address, OutboxRow
from limpet.types.event import Notice

MAYBE_SHOWN = "[An answer from before may not have been shown: Limpet ended while it was printed. It is in the log.]"


async def deliver(services: Services, address: Address, show: Callable[[OutboxRow], None]) -> list[OutboxRow]:
    """Show every part that waits for this terminal; gives those that were shown now.

    `address.thread` names the process that a terminal belongs to: several may have one session open, and each shows
    the answers to what was said there. What is meant for one that is dead is shown by whichever comes first.
    The intent is committed before a part is shown. A part that a dead process was showing is not shown again: it may
    have been read, so one line says that it may be missing. `show` raises `OSError` when nobody can see it.
    """
    store, owner = services.store, services.owner
    shown: list[OutboxRow] = []
    rows = store.read(lambda connection: outbox.waiting(connection, address))
    ours = {(row.turn, row.text) for row in rows if row.address == address}
    for row in rows:
        if row.address != address and owner.alive(row.address.thread):
            continue
        if row.address != address and (row.turn, row.text) in ours:  # one answer to what was said in both
            await store.write(lambda connection, row=row: outbox.settle(connection, row.id, state="expired"))
            continue
        state = await store.write(lambda connection, row=row: outbox.attempt(connection, row.id, owner=owner))
        if state == "unknown":
            services.emit(Notice(MAYBE_SHOWN, level="warning"))
        if state != "attempting":
            continue
        show(row)
        await store.write(lambda connection, row=row: outbox.settle(connection, row.id, state="sent"))
        shown.append(row)
    return shown
