"""Intake: what a channel brings is judged, stored once, and only then acknowledged; the rest happens afterwards."""

from __future__ import annotations

import logging
from dataclasses import replace

from limpet.assistant import asking
from limpet.assistant.commands import find as find_command
from limpet.assistant.conversation import Conversation
from limpet.assistant.receiving import arrived, receive, taken
from limpet.assistant.services import Services
from limpet.errors import ConfigError, InputError, LimpetError
from limpet.gateway import binding
from limpet.gateway.access import Pace, judge
from limpet.gateway.enclosed import Enclosed, enclosed
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.lane import Lanes
from limpet.gateway.supervisor import Link
from limpet.session import keys
from limpet.store import inbox, outbox, peers, sessions, turns
from limpet.store.peers import CONFIGURED, Peer
from limpet.store.sql import Connection
from limpet.types.channel import Arrival
from limpet.types.envelope import Inbound, InboxRow, Part, Trust, from_outside

log = logging.getLogger(__name__)

TOGETHER = 0.8
"""Seconds that further parts of an album or a long text may take to come (DESIGN 13)."""
NEARLY_FULL = 0.95
"""Share of what a message may hold from which on it looks like the first part of a longer text."""
SPOKE_EVERY = 600_000
"""Milliseconds between two notes of where somebody spoke last, in the same chat."""
PAIRING = (
    "Hello. I am a personal agent and do not know you yet. Your code is **{code}**: if my owner approves it within an"
    " hour (`limpet pair approve {code}`), we can talk."
)
TOO_FAST = "You write faster than I may read ({most} messages a minute). What comes before the minute is over is lost."
EDITED = "[Edited, it now reads] {text}"
QUOTED = "[In reply to: {quoted}]\n{text}"
QUOTE = 300
"""Characters of a quoted message."""


class Intake:
    """Takes what all links bring."""

    def __init__(self, ground: Ground, lanes: Lanes, notices: Notices) -> None:
        self._ground = ground
        self._lanes = lanes
        self._notices = notices
        self._pace = Pace(ground.clock)

    async def take(self, link: Link, arrival: Arrival) -> None:
        """Judge and store one arrival. Raises `StoreError` when it could not be stored."""
        arrival = replace(arrival, event=from_outside(arrival.event))
        store, address = self._ground.store, arrival.address
        peer = store.read(lambda connection: peers.find(connection, address, arrival.sender))
        access = judge(link.settings, arrival, peer)
        if access.kind == "ignored":
            log.info("%s: a message in %s is ignored: %s", address.channel, address.chat, access.why)
            return
        if access.kind == "pair":
            await self._pair(arrival)
            return
        if store.read(lambda connection: inbox.find_event(connection, address, arrival.event)) is not None:
            return
        if access.trust != "owner" and not await self._is_paced(link, arrival):
            return
        await self._note_peer(link, arrival, peer)
        route = binding.choose(self._ground.agents.settings.gateway.bindings, arrival, default=link.settings.agent)
        try:
            async with self._ground.agents.use(route.agent) as services:
                await self._store(services, link, arrival, trust=access.trust)
        except (InputError, ConfigError) as error:
            await self._notices.say(address, error.present(), key=f"refused:{address.channel}:{arrival.event}")

    async def _pair(self, arrival: Arrival) -> None:
        """Give a stranger a code, once; the code and the message that tells it are one commit."""
        now, address = self._ground.clock.now(), arrival.address

        def work(connection: Connection) -> None:
            code = peers.ask(connection, address, arrival.sender, name=_called(arrival), now=now)
            if code:
                part = Part(address, PAIRING.format(code=code), f"pairing:{code}", "notice")
                outbox.queue(connection, part, session="", turn="", now=now)

        if self._ground.store.read(lambda connection: peers.may_ask(connection, address, arrival.sender, now=now)):
            await self._ground.store.write(work)
            self._ground.nudges.send()

    async def _is_paced(self, link: Link, arrival: Arrival) -> bool:
        most = link.settings.per_minute
        verdict = self._pace.allows(arrival, most=most)
        if verdict == "first no":
            await self._notices.say(arrival.address, TOO_FAST.format(most=most))
        return verdict == "yes"

    async def _note_peer(self, link: Link, arrival: Arrival, peer: Peer | None) -> None:
        """Remember where somebody has spoken alone with an agent; the owner's notices go there."""
        now, address = self._ground.clock.now(), arrival.address
        if arrival.in_group or (peer is None and arrival.sender not in link.settings.owners):
            return
        if peer is None:
            found = Peer(
                channel=address.channel,
                account=address.account,
                id=arrival.sender,
                role="owner",
                name=_called(arrival),
                approved=now,
                by=CONFIGURED,
                chat=address.chat,
                seen=now,
            )
            await self._ground.store.write(lambda connection: peers.note_configured(connection, found))
        elif peer.chat != address.chat or now - peer.seen > SPOKE_EVERY:
            await self._ground.store.write(lambda connection: peers.spoke(connection, address, arrival.sender, now=now))

    async def _store(self, services: Services, link: Link, arrival: Arrival, *, trust: Trust) -> None:
        settings = self._ground.agents.settings.sessions
        key = keys.for_event(
            services.agent,
            arrival.address,
            arrival.sender,
            in_group=arrival.in_group,
            scope=settings.scope,
            links=settings.links,
        )
        if arrival.replaces and await self._reworded(services, key, arrival):
            return
        told = await enclosed(arrival.files, services, session=key)
        conversation = Conversation(services, key)
        row, new = await receive(conversation, _inbound(arrival, trust, told))
        if not new:
            return
        command = find_command(row.inbound.text)
        if command is None or command.needs_lease:
            self._lanes.poke(key, after=self._pause(link, arrival))
        self._ground.tasks.start(self._arrived(conversation, row), f"arrival under {key}")

    def _pause(self, link: Link, arrival: Arrival) -> float:
        """How long to wait for further parts of the same message."""
        full = len(arrival.text) >= link.channel.traits.limit * NEARLY_FULL
        return TOGETHER if arrival.album or full else 0.0

    async def _reworded(self, services: Services, key: str, arrival: Arrival) -> bool:
        """An edited message replaces the one that still waits. One that was answered long ago changes nothing."""
        address = arrival.address

        def work(connection: Connection) -> bool:
            waits = inbox.of_message(connection, key, arrival.replaces)
            if waits is not None:
                inbox.reword(connection, waits, taken(services, _worded(arrival), trust=waits.inbound.trust))
                return True
            live = sessions.live(connection, key)
            return live is None or turns.live(connection, live.id) is None

        done = await self._ground.store.write(work)
        if done:
            log.info("%s: message %s was edited (%s)", address.channel, arrival.replaces, arrival.event)
        return done

    async def _arrived(self, conversation: Conversation, row: InboxRow) -> None:
        """Hooks, and what is answered at once: commands that only look, `/stop`, and the mode `interrupt`."""
        services, key = conversation.services, conversation.key
        try:
            if await arrived(conversation, row):
                self._lanes.sweep()
            command = find_command(row.inbound.text)
            if command is None and key in self._lanes.running and self._mode(services, key) == "interrupt":
                await asking.stop(services, key, waits=row.id)
        except LimpetError as error:
            await self._notices.say(row.inbound.address, error.present())

    def _mode(self, services: Services, key: str) -> str:
        live = self._ground.store.read(lambda connection: sessions.live(connection, key))
        own = self._ground.store.read(lambda connection: sessions.queue_of(connection, live.id)) if live else ""
        return own or services.rules.queueing(key).mode


def _inbound(arrival: Arrival, trust: Trust, told: Enclosed) -> Inbound:
    text = _worded(arrival)
    if arrival.replaces:
        text = EDITED.format(text=text)
    return Inbound(
        address=arrival.address,
        event=arrival.event,
        text="\n\n".join(filter(None, (text, *told.texts))) or "[an empty message]",
        sender=arrival.sender,
        trust=trust,
        images=told.images,
        message=arrival.message,
        name=_called(arrival),
        group=" ".join(arrival.chat_name.split())[:80] or arrival.address.chat[:80] if arrival.in_group else "",
    )


def _called(arrival: Arrival) -> str:
    """What the sender is called, in one line."""
    return " ".join(arrival.sender_name.split())[:80]


def _worded(arrival: Arrival) -> str:
    if not arrival.quoted or find_command(arrival.text):
        return arrival.text
    quoted = " ".join(arrival.quoted.split())
    return QUOTED.format(quoted=f"{quoted[:QUOTE]}…" if len(quoted) > QUOTE else quoted, text=arrival.text)
