"""`/mcp`: prompts that MCP servers offer, as messages of the person who calls one.

What a prompt says is a stranger's text: it goes into the conversation as the person's message, with the trust of its
server. The message is an event of its own, stored under a name made of the command's: however often a crash repeats
the command, it is said once.
"""

from __future__ import annotations

from msgspec import structs

from limpet.assistant.orders import Order
from limpet.errors import InputError
from limpet.llm.unicode import clean
from limpet.store import inbox
from limpet.store.sql import Connection
from limpet.types.envelope import InboxRow, Trust, lowest

LONGEST = 100_000
"""Characters of a prompt."""
NONE = "No MCP server offers prompts. docs/mcp.md says how to add one."


async def mcp(order: Order) -> str:
    """List the prompts, or say one."""
    prompts = order.conversation.services.prompts
    if prompts is None or not (listed := prompts.listed()):
        return NONE
    if not order.arguments:
        return "\n".join(f"/mcp {how}{f' - {about}' if about else ''}" for how, about in listed)
    name, _, arguments = order.arguments.partition(" ")
    text, trust = await prompts.text(name, arguments.strip())
    if len(text) > LONGEST:
        raise InputError(f"What {name} says has {len(text):,} characters; at most {LONGEST:,} can be taken.")
    await say(order, f"[The prompt {name}:]\n{text}", trust=trust)
    return ""


async def say(order: Order, text: str, *, trust: Trust) -> None:
    """Put `text`, trusted so far, into the conversation as the message of who gave the command."""
    services, row = order.conversation.services, order.row
    inbound = structs.replace(
        row.inbound,
        event=event_of(row),
        text=services.redactor.redact(clean(text)),
        trust=lowest((row.inbound.trust, trust)),
    )
    key, now = order.conversation.key, services.clock.now()
    await services.store.write(lambda connection: inbox.receive(connection, key, inbound, now=now))


def event_of(row: InboxRow) -> str:
    """The event id of the message that the command in `row` becomes."""
    return f"{row.inbound.event}/prompt"


def said(connection: Connection, row: InboxRow) -> InboxRow | None:
    """The message that the command in `row` has become."""
    return inbox.find_event(connection, row.inbound.address, event_of(row))
