"""Commands that move about in the session's tree: back to a message, into a copy, and names for places.

Nothing is deleted: a move is a fact in the log, and what is left behind stays where it is. Files stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.orders import Order
from limpet.session import branch, keys
from limpet.store import entries, forks, sessions
from limpet.store.sql import Connection
from limpet.types.entry import Entry, Label, Leaf, Payload

FILES = "Files are as they were left."


async def rewind(order: Order) -> str:
    log = order.conversation.log()
    if not order.arguments:
        if not branch.places(log.entries):
            return "Nothing was said here yet."
        return f"{branch.listing(log.entries)}\n/rewind N goes back to before message N, /rewind LABEL to a label."
    target = branch.target(log.entries, order.arguments)
    await _append(order, Leaf(target))
    return f"{went_back(order.conversation.log().entries)} {FILES}"


async def fork(order: Order) -> str:
    lease, services, log = order.lease, order.conversation.services, order.conversation.log()
    assert lease is not None
    if not log.entries:
        return "Nothing was said here yet."
    now, name = services.clock.now(), order.arguments
    line = branch.line_with_labels(log.entries, log.leaf)

    def work(connection: Connection) -> str:
        origin = sessions.find(connection, lease.session)
        assert origin is not None
        key = keys.cli(origin.agent, name) if name else forks.free_key(connection, keys.cli(origin.agent, "fork"))
        forks.fork(connection, origin, line, key=key, now=now)
        return key

    key = await services.store.write(work)
    return (
        f"A copy of this conversation is {key}: limpet chat --session {keys.name_of(key)}. "
        "Here it goes on as before; both share the same files."
    )


async def label(order: Order) -> str:
    log = order.conversation.log()
    if not order.arguments:
        known = branch.labels(log.entries)
        return "labels: " + ", ".join(known) if known else "There are no labels. /label TEXT makes one."
    text = branch.check_label(order.arguments)
    await _append(order, Label(target=branch.labelled(log.entries), label=text))
    return f"Labelled. /rewind {text} comes back here."


def went_back(log: Sequence[Entry]) -> str:
    """Where the conversation is after a move."""
    said = branch.places(log)
    where = f"after “{branch.first_words(said[0])}”" if said else "at its beginning"
    return f"The conversation is {where} now; what came later is kept."


async def _append(order: Order, payload: Payload) -> None:
    lease, services = order.lease, order.conversation.services
    assert lease is not None
    now = services.clock.now()
    await services.store.write(lambda connection: entries.append(connection, lease, payload, turn="", now=now))
