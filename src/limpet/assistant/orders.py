"""What a slash command is, and what it is given."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

from msgspec import Struct

from limpet.assistant.services import Services
from limpet.session.log import Log
from limpet.store.sessions import Lease
from limpet.types.envelope import Inbound, InboxRow

_SHAPE = re.compile(r"/([a-z_][a-z0-9_-]*)(?:@\S+)?(?:\s+(.*))?", re.DOTALL)


class Talk(Protocol):
    """What a command needs of the conversation it is given in; provided by `conversation`."""

    @property
    def services(self) -> Services: ...
    @property
    def key(self) -> str: ...
    def model_reference(self) -> str: ...
    def log(self) -> Log: ...
    def name_model(self, reference: str) -> None: ...
    def forget(self) -> None: ...
    def stop(self) -> None: ...
    async def run_begun(self, lease: Lease, name: str) -> object: ...


class Order(Struct, frozen=True):
    """A command as it was given. `lease` is None for those that need none."""

    conversation: Talk
    row: InboxRow
    arguments: str
    lease: Lease | None = None


class Command(Struct, frozen=True):
    """`run` does it and gives the reply; None when the reply comes on its own (a turn).

    `needs_lease`: it waits for its place in the inbox; with `looks_alone` not when it comes without arguments.
    `decides`: what waits for the owner may go on after it. `peers` says where others than the owner may give it: in
    chats of theirs with the agent `alone`, or `anywhere`.
    """

    name: str
    summary: str
    run: Callable[[Order], Awaitable[str | None]]
    usage: str = ""
    needs_lease: bool = False
    looks_alone: bool = False
    decides: bool = False
    peers: Literal["never", "alone", "anywhere"] = "never"

    def is_for(self, inbound: Inbound) -> bool:
        """Whether who says it may give this command there."""
        if inbound.trust == "owner" or self.peers == "anywhere":
            return True
        return inbound.trust == "peer" and self.peers == "alone" and not inbound.group


def parse(text: str) -> tuple[str, str] | None:
    """The name and the arguments of the command in `text`; None when it is none."""
    match = _SHAPE.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None
