"""`/recall`: whether memories go with a message, and why those of the last one did."""

from __future__ import annotations

from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.store import entries
from limpet.store.sql import Connection
from limpet.types.content import Text
from limpet.types.entry import RecallSwitch, UserEntry


async def recall(order: Order) -> str:
    """Raises `InputError`."""
    conversation, lease = order.conversation, order.lease
    recalling, log = conversation.services.recall, conversation.log()
    if recalling is None:
        return "There is no memory to recall from here."
    on = recalling.is_on if log.recalls is None else log.recalls
    match order.arguments:
        case "":
            return f"Recall is {'on' if on else 'off'} here. /recall why shows what was found for your last message."
        case "why":
            said = [entry.payload for entry in log.path() if isinstance(entry.payload, UserEntry) and not entry.erased]
            if not said:
                return "Nothing was said here yet."
            text = "\n".join(one.text for one in said[-1].message.content if isinstance(one, Text))
            state = "" if on else "Recall is off here; if it were on:\n"
            return state + await recalling.why(text, key=conversation.key, log=log)
        case "on" | "off":
            pass
        case _:
            raise InputError("That is not known.", hint="/recall on, /recall off or /recall why.")
    assert lease is not None
    switch, now = RecallSwitch(order.arguments == "on"), conversation.services.clock.now()

    def work(connection: Connection) -> None:
        entries.append(connection, lease, switch, turn="", now=now)

    await conversation.services.store.write(work)
    return "Memories go with your messages here." if switch.on else "No memories go with your messages here any more."
