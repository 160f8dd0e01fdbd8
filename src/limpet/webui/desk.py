"""The desk: what the page stands on, and all that it may ask for, by ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from limpet.config.paths import Home
from limpet.gateway.gateway import Gateway
from limpet.gateway.ground import Agents
from limpet.gateway.watch import Watch
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.types.channel import File
from limpet.types.envelope import Address
from limpet.types.ports import Clock

AGENT = "main"
"""Who answers at the page."""


class Voice(Protocol):
    """Called when the owner says something at the page; provided by the server's channel `web`."""

    async def say(self, chat: str, text: str, key: str, *, files: Sequence[File] = ()) -> bool:
        """Whether it is new: the same `key` is the same message. Raises `StoreError`, `NotReadyError`."""
        ...

    def address_of(self, chat: str) -> Address:
        """Where answers to a chat of the page go."""
        ...


@dataclass(frozen=True, slots=True)
class Desk:
    """A running gateway, its agents, its database and what it tells; `voice` is how the owner speaks."""

    gateway: Gateway
    agents: Agents
    voice: Voice
    store: Store
    owner: Owner
    nudges: Nudges
    watch: Watch
    clock: Clock
    home: Home
