"""What comes from other programs, not from people: runs of an agent and wakes of its heartbeat, each stored once.

Implements the port `Outside` of `server` and of the event folder. Nothing of it is acknowledged before it is on disk.
"""

from __future__ import annotations

import logging
import re
from typing import Literal

from msgspec import Struct, structs

from limpet.assistant.addresses import named
from limpet.assistant.conversation import Conversation
from limpet.assistant.receiving import arrived, receive, taken
from limpet.assistant.services import Services
from limpet.errors import ConfigError, InputError, LimpetError, NoModelError, ToolError
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.lane import Lanes
from limpet.session import keys
from limpet.store import inbox, peers, sessions, wakes
from limpet.store.sql import Connection
from limpet.types.envelope import Address, Inbound, InboxRow, Mandate, Tier, Trust, from_outside

log = logging.getLogger(__name__)

CHANNEL = "hook"
"""Where such events come from."""
_TAG = re.compile(r"<(?=\s*/?\s*payload\b)", re.IGNORECASE)
UNUSABLE = "An event for the hook **{hook}** was refused: it wants the model {model}, which cannot be had: {reason}"
LOST = "The hook **{hook}** is to answer {to}, which is no chat that I know, so its answers come here. {hint}"


class Run(Struct, frozen=True):
    """A run that a program wants. `event` names it for good within `hook`; `session` empty: one of its own.

    `to` empty: the owner's newest chat. `thinking`, `model`, `profile` empty, `dollars` and `minutes` 0: as usual.
    """

    hook: str
    event: str
    text: str
    agent: str = "main"
    session: str = ""
    trust: Trust = "external"
    sender: str = ""
    deliver: bool = True
    to: str = ""
    model: str = ""
    thinking: Literal["", "off", "low", "medium", "high"] = ""
    tools: tuple[str, ...] = ()
    profile: Tier = ""
    dollars: float = 0.0
    minutes: float = 0.0

    @property
    def key(self) -> str:
        """The session key under which it runs."""
        return keys.main(self.agent) if self.session == "main" else keys.hook(self.hook, self.session)


class Nudge(Struct, frozen=True):
    """Something for the heartbeat of `agent` to look at: now (`soon`), or with the next beat."""

    event: str
    source: str
    text: str
    agent: str = "main"
    trust: Trust = "external"
    soon: bool = True


class Taken(Struct, frozen=True):
    """What was stored, and whether it is new."""

    id: str
    is_new: bool


class Outside:
    """Takes what other programs send."""

    def __init__(self, ground: Ground, lanes: Lanes, notices: Notices) -> None:
        self._ground = ground
        self._lanes = lanes
        self._notices = notices

    @property
    def agents(self) -> tuple[str, ...]:
        return self._ground.agents.names

    def knows(self, to: str) -> str:
        """Why nothing can be sent to the chat `to`; empty when it can."""
        try:
            self._ground.store.read(lambda connection: self._named(connection, to))
        except ToolError as error:
            return error.present()
        return ""

    async def run(self, wanted: Run) -> Taken:
        """Store a run, which then begins by itself. Raises `InputError` for what cannot be taken, `StoreError`."""
        wanted = structs.replace(wanted, event=from_outside(wanted.event))
        store, address = self._ground.store, Address(CHANNEL, wanted.hook)
        known = store.read(lambda connection: inbox.find_event(connection, address, wanted.event))
        if known is not None:
            return Taken(f"{CHANNEL}-{known.id}", is_new=False)
        to = await self._where(wanted)
        async with self._ground.agents.use(wanted.agent) as services:
            await self._check_model(services, wanted)
            conversation, agent, now = Conversation(services, wanted.key), wanted.agent, self._ground.clock.now()
            await store.write(lambda connection: sessions.open_live(connection, wanted.key, agent=agent, now=now))
            row, new = await receive(conversation, _inbound(wanted, address, to))
            if new:
                self._lanes.poke(wanted.key)
                self._ground.tasks.start(_arrived(conversation, row), f"arrival under {wanted.key}")
        return Taken(f"{CHANNEL}-{row.id}", is_new=new)

    async def wake(self, nudge: Nudge) -> Taken:
        """Store something for the heartbeat. Raises `ConfigError`, `StoreError`."""
        now = self._ground.clock.now()
        async with self._ground.agents.use(nudge.agent) as services:
            text = taken(services, nudge.text, trust=nudge.trust)

        def work(connection: Connection) -> Taken:
            new = not wakes.is_known(connection, nudge.event)
            made = wakes.add(
                connection,
                nudge.event,
                agent=nudge.agent,
                source=nudge.source,
                text=text,
                trust=nudge.trust,
                soon=nudge.soon,
                now=now,
            )
            return Taken(f"wake-{made}", is_new=new)

        found = await self._ground.store.write(work)
        self._ground.nudges.wake()
        return found

    async def _check_model(self, services: Services, wanted: Run) -> None:
        """Refuse a model that cannot be had: its run could not begin, and all that come after it would wait for it."""
        if not wanted.model:
            return
        try:
            await services.models.get(wanted.model)
        except (ConfigError, NoModelError) as error:
            text = UNUSABLE.format(hook=wanted.hook, model=wanted.model, reason=error)
            await self._notices.tell_owner(text, key=f"hook:{wanted.hook}:model:{wanted.model}")
            raise InputError(f"The model {wanted.model!r} cannot be had: {error}", hint=error.hint) from error

    async def _where(self, wanted: Run) -> Address | None:
        """Where the answer goes; a chat that is not known is told to the owner, who is answered instead."""
        store = self._ground.store
        if not wanted.deliver:
            return None
        if wanted.to:
            try:
                return store.read(lambda connection: self._named(connection, wanted.to))
            except ToolError as error:
                text = LOST.format(hook=wanted.hook, to=wanted.to, hint=error.hint)
                await self._notices.tell_owner(text, key=f"hook:{wanted.hook}:{wanted.to}")
        return store.read(peers.owner_home)

    def _named(self, connection: Connection, to: str) -> Address:
        return named(connection, to, targets=self._ground.agents.settings.webhooks.targets)


async def _arrived(conversation: Conversation, row: InboxRow) -> None:
    try:
        await arrived(conversation, row)
    except LimpetError as error:
        log.warning("hooks were not told of %s: %s", row.inbound.event, error)


def _inbound(wanted: Run, address: Address, to: Address | None) -> Inbound:
    mandate = Mandate(
        job=f"{CHANNEL}:{wanted.hook}",
        name=wanted.hook,
        purpose="hook",
        channel=CHANNEL,
        sender=wanted.hook,
        model=wanted.model,
        tools=wanted.tools,
        dollars=wanted.dollars,
        deliver=to is not None,
        to=to,
        profile=wanted.profile,
        thinking=wanted.thinking,
        minutes=wanted.minutes,
    )
    return Inbound(
        address=address,
        event=wanted.event,
        text=wanted.text,
        sender=wanted.sender or f"the hook {wanted.hook}",
        trust=wanted.trust,
        mandate=mandate,
    )


def enclosed_payload(text: str) -> str:
    """What strangers wrote, between marks that it cannot end by itself."""
    return f"<payload>{_TAG.sub('(', text)}</payload>"
