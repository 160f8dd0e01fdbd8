"""`/approve`, `/deny`, `/answer`: the owner's word from within the conversation that waits for it."""

from __future__ import annotations

from limpet.assistant import approvals, asking
from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.store import approvals as rows
from limpet.types.approval import Approval, Reply

NOTHING = "Nothing waits for your word here."


async def approve(order: Order) -> str:
    words = order.arguments.split()
    always = words[-1:] == ["always"]
    return await _settle(order, " ".join(words[: len(words) - always]), Reply("always" if always else "once"))


async def deny(order: Order) -> str:
    return await _settle(order, order.arguments.strip(), Reply("deny"))


async def answer(order: Order) -> str:
    """The first word names the question where it is the id of one, else all of it is the answer."""
    first, _, rest = order.arguments.partition(" ")
    named = any(one.id.startswith(first) for one in _open(order, first)) and bool(rest.strip())
    text = (rest if named else order.arguments).strip()
    return await _settle(order, first if named else "", Reply("answer", text))


async def _settle(order: Order, name: str, reply: Reply) -> str:
    """Settle what `name` begins, or the only thing that waits."""
    inbound = order.row.inbound
    if inbound.trust != "owner":
        return "Only the owner may decide this."
    waiting = _open(order, name)
    meant = [one for one in waiting if one.id.startswith(name)]
    if not waiting:
        return NOTHING
    if len(meant) != 1:
        said = f"There is no {name} that waits." if not meant else "Say which one."
        return "\n".join([said, *map(asking.how_to_decide, waiting)])
    try:
        made = await approvals.decide(order.conversation.services, meant[0].id, reply, who=approvals.who_is(inbound))
    except InputError as error:
        return error.present()
    return f"{_SAID[reply.word]}: {made.wanted.plan}"


_SAID = {"once": "Approved", "always": "Approved from now on", "deny": "Denied", "answer": "Answered"}


def _open(order: Order, name: str) -> list[Approval]:
    """What waits in this conversation; what `name` begins may also be of another one and have been asked here."""
    services = order.conversation.services
    found = asking.open_under(services, order.conversation.key)
    if not name or any(one.id.startswith(name) for one in found):
        return found
    who, now = approvals.who_is(order.row.inbound), services.clock.now()
    return [*found, *services.store.read(lambda connection: rows.open_for(connection, who, name, now=now))]
