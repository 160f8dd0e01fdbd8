"""`/trust`: whose words are in the conversation, and the owner's word that they may be acted on."""

from __future__ import annotations

from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.session.log import Log
from limpet.store import audit, entries
from limpet.store.sql import Connection
from limpet.types.entry import Entry, ToolResultEntry, TrustOnce, UserEntry

_SHOWN = 10


async def trust(order: Order) -> str:
    """Raises `InputError`."""
    conversation, lease = order.conversation, order.lease
    log = conversation.log()
    if not order.arguments:
        return _sources(log)
    if order.arguments != "once":
        raise InputError("That is not known.", hint="/trust shows whose words are here, /trust once lets a turn pass.")
    if not log.tainted:
        return "No strangers' words are in this conversation: nothing is asked because of them."
    assert lease is not None
    now = conversation.services.clock.now()

    def work(connection: Connection) -> None:
        entries.append(connection, lease, TrustOnce(), turn="", now=now)
        audit.append(connection, "trust.once", lease.session, now=now)

    await conversation.services.store.write(work)
    return (
        "During the next turn I act on strangers' words without asking because of them; what always asks, still asks. "
        "After it the rule is back."
    )


def _sources(log: Log) -> str:
    if not log.tainted:
        return "Only you and your own tools have spoken here. Nothing is asked because of strangers' words."
    found = list(dict.fromkeys(_source(entry) for entry in log.path() if entry.trust == "external"))
    shown = "\n".join(f"- {source}" for source in found[-_SHOWN:])
    more = f"\n- … and {len(found) - _SHOWN} before these" if len(found) > _SHOWN else ""
    return (
        f"Strangers' words are in this conversation:\n{shown}{more}\n"
        "So I ask before I send something, change what steers me, or use an address or a value that only they named. "
        "/trust once lets the next turn pass; /new begins without them."
    )


def _source(entry: Entry) -> str:
    match entry.payload:
        case ToolResultEntry(name=name, result=result):
            return result.details.summary or name
        case UserEntry(sender=sender):
            return f"a message of {sender or 'somebody else'}"
        case _:
            return "a summary of an earlier part"
