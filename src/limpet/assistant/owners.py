"""The owner's own chats: those that share his memory (DESIGN 13), by who is known as the owner on which channel."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from limpet.assistant.memory_scope import OWNER
from limpet.config.channels import accounts
from limpet.config.schema import Settings
from limpet.session import keys
from limpet.store.peers import Peer
from limpet.types.envelope import Address


def with_owners(settings: Settings, owners: Iterable[Peer]) -> Settings:
    """`settings` in which the direct chats of the owner are bound to the owner's memory."""
    named = [(one.channel, one.account, one.id) for one in owners]
    named += [
        (kind, account, one) for (kind, account), own in accounts(settings.channels).items() for one in own.owners
    ]
    if not named:
        return settings
    bound = dict(settings.memory.bound)
    own = [key for kind, account, one in named for key in _chats(settings, Address(kind, account), one)]
    bound[OWNER] = (*bound.get(OWNER, ()), *dict.fromkeys(own))
    return structs.replace(settings, memory=structs.replace(settings.memory, bound=bound))


def _chats(settings: Settings, address: Address, sender: str) -> list[str]:
    """The keys, without `agent:ID:`, that a direct chat of somebody can have."""
    person = keys.person(address, sender, settings.sessions.links)
    scope = settings.sessions.scope
    return [] if scope == "main" else [keys.direct("x", address, person, scope=scope).removeprefix("agent:x:")]
