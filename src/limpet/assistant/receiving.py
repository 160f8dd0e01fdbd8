"""Receiving: how an event gets into a conversation, and what is done about it at once."""

from __future__ import annotations

from msgspec import structs

from limpet.assistant import commands
from limpet.assistant.orders import Talk
from limpet.assistant.services import Services
from limpet.errors import InputError
from limpet.llm.tokens import estimate
from limpet.llm.unicode import clean
from limpet.prompt.runtime import disarmed
from limpet.store import inbox, sessions
from limpet.store.commits import Queueing
from limpet.store.sql import Connection
from limpet.types.envelope import Inbound, InboxRow, Trust
from limpet.types.hook import MessageReceived

SHORT = 1_000
"""Characters that fit into any window."""
MOST_OF_WINDOW = 0.6
"""Share of the model's window that one message may take: prompt, tools and the answer need the rest."""
MESSAGE_LIMIT = 400_000
"""Characters of one message; a longer one is refused before anything is stored."""


async def receive(conversation: Talk, inbound: Inbound) -> tuple[InboxRow, bool]:
    """Store an event; gives its row, and whether it is new.

    Raises `InputError` for what cannot be taken, `StoreError` when it could not be stored.
    """
    services, key = conversation.services, conversation.key
    if len(inbound.text) > MESSAGE_LIMIT:
        raise InputError(
            f"The message has {len(inbound.text):,} characters; at most {MESSAGE_LIMIT:,} can be taken.",
            hint="Put it into a file in the workspace and say which.",
        )
    await _check_room(conversation, inbound.text)
    inbound = structs.replace(inbound, text=taken(services, inbound.text, trust=inbound.trust))
    now = services.clock.now()
    return await services.store.write(lambda connection: inbox.receive(connection, key, inbound, now=now))


def taken(services: Services, text: str, *, trust: Trust) -> str:
    """The words of a message as they are stored: whole characters, no secrets, and from others no metadata of ours."""
    said = services.redactor.redact(clean(text[:MESSAGE_LIMIT]))
    return said if trust == "owner" else disarmed(said)


async def _check_room(conversation: Talk, text: str) -> None:
    """Refuse a text that would fill the model's window by itself. Raises `InputError`, `NoModelError`."""
    if len(text) < SHORT:
        return
    profile = (await conversation.services.models.get(conversation.model_reference())).profile
    room = int(profile.window * MOST_OF_WINDOW)
    if 0 < room < (tokens := round(estimate(text) * profile.token_factor)):
        raise InputError(
            f"The message has about {tokens:,} tokens; {profile.reference} can take {room:,} in one message.",
            hint="Put it into a file in the workspace and say which, or choose a model with a larger window.",
        )


async def arrived(conversation: Talk, row: InboxRow) -> bool:
    """What is done at once about an event that has just been stored: hooks, and commands that need no lease.

    Whether what waited for the owner may go on now.
    """
    services, inbound = conversation.services, row.inbound
    if services.hooks is not None:
        told = MessageReceived(conversation.key, inbound.address.channel, inbound.sender, inbound.text)
        await services.hooks.tell(told)
    if (command := commands.find(inbound.text)) and not command.needs_lease:
        await commands.answer(conversation, row, command)
        return command.decides
    return False


def queueing_of(services: Services, connection: Connection, *, key: str, session: str) -> Queueing:
    """What becomes of events that come while a turn of `session` runs."""
    usual = services.rules.queueing(key)
    own = sessions.queue_of(connection, session)
    return structs.replace(usual, mode=own) if own else usual
