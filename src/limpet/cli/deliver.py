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
    """Show every part that waits for `address`; gives those that were shown now.

    The intent is committed before a part is shown. A part that a dead process was showing is not shown again: it may
    have been read, so one line says that it may be missing. `show` raises `OSError` when nobody can see it.
    """
    store, owner = services.store, services.owner
    shown: list[OutboxRow] = []
    for row in store.read(lambda connection: outbox.waiting(connection, address)):
        thread = row.address.thread
        if thread not in ("", address.thread) and owner.alive(thread):
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
