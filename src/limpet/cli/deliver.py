"""Delivery to the terminal: the outbox parts of a session, each shown once, in order.

Each process is a thread of its own in the chat, so that two terminals on one session do not take each other's answers.
What was meant for a terminal that is gone is shown by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from limpet.assistant.services import Services
from limpet.store import outbox
from limpet.store.sql import Connection
from limpet.types.envelope import Address, OutboxRow, OutboxState
from limpet.types.event import Notice
from limpet.types.hook import MessageSending

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
    ours = [row for row in rows if row.address == address or not owner.alive(row.address.thread)]
    for row, copies in _once_each(ours):

        def attempt(connection: Connection, row: OutboxRow = row, copies: Sequence[OutboxRow] = copies) -> OutboxState:
            for copy in copies:
                outbox.settle(connection, copy.id, state="expired")
            return outbox.attempt(connection, row.id, owner=owner)

        state = await store.write(attempt)
        if state == "unknown":
            services.emit(Notice(MAYBE_SHOWN, level="warning"))
        if state != "attempting":
            continue
        if services.hooks is not None:
            where = row.address
            await services.hooks.tell(MessageSending(row.session, where.channel, where.chat, row.text))
        show(row)
        await store.write(lambda connection, row=row: outbox.settle(connection, row.id, state="sent"))
        shown.append(row)
    return shown


def _once_each(rows: Sequence[OutboxRow]) -> list[tuple[OutboxRow, list[OutboxRow]]]:
    """Each part with its copies: one answer to what was said on several terminals, all of which are now this one.

    The copies end in the transaction that attempts the part, so that no crash can make two of them seen. The part that
    somebody was already showing stands for its copies.
    """
    groups: dict[tuple[str, str], list[OutboxRow]] = {}
    for row in rows:
        groups.setdefault((row.turn or str(row.id), row.text), []).append(row)
    found: list[tuple[OutboxRow, list[OutboxRow]]] = []
    for group in groups.values():
        first = next((row for row in group if row.state == "attempting"), group[0])
        found.append((first, [row for row in group if row is not first]))
    return found
