"""What programs say in conversations of their own, and what they are answered: the API's side of the gateway.

A message is stored before anything is done about it, and answered by a turn in its lane, like any other; whoever
waits for the answer only looks on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from limpet.assistant import asking
from limpet.assistant.conversation import Conversation
from limpet.assistant.receiving import arrived, receive
from limpet.errors import LimpetError
from limpet.gateway.enclosed import enclosed
from limpet.gateway.ground import Ground
from limpet.gateway.lane import Lanes
from limpet.gateway.watch import Watch
from limpet.session import keys
from limpet.store import entries, inbox, outbox, sessions, turns, usage
from limpet.store.sql import Connection
from limpet.types.channel import File
from limpet.types.entry import AssistantEntry
from limpet.types.envelope import Address, Inbound, InboxRow, OutboxRow, Trust
from limpet.types.event import AnswerReset, Event, TextDelta, ToolEnded, TurnEnded, TurnStarted
from limpet.types.message import Sampling, StopReason
from limpet.types.usage import NO_USAGE, Usage

log = logging.getLogger(__name__)

CHANNEL, ACCOUNT = keys.API, "main"
LOOK = 0.25
"""Seconds between two looks at what became of a message, when nothing is heard of it."""


@dataclass(frozen=True, slots=True)
class Saying:
    """The program `token` says something to `agent` in its conversation `session`.

    `event` names it for good; by `mark` it is seen whether something else is said under the same name.
    """

    token: str
    session: str
    event: str
    text: str
    mark: str = ""
    agent: str = "main"
    trust: Trust = "peer"
    files: tuple[File, ...] = ()
    sampling: Sampling | None = None

    @property
    def key(self) -> str:
        return keys.api(self.agent, self.token, self.session)

    @property
    def address(self) -> Address:
        return Address(CHANNEL, ACCOUNT, f"{self.token}:{self.session}")


class Outcome(Struct, frozen=True):
    """What became of a message. `error` is the name of the class of what ended the turn.

    `kept`: no turn could begin (no model, no disk), it is tried again later; `text` says why.
    """

    state: Literal["done", "failed", "cancelled", "kept"]
    text: str
    stop: StopReason = "stop"
    usage: Usage = NO_USAGE
    error: str = ""


class Break(Struct, frozen=True):
    """What was heard so far was one answer; what comes now is another (`again`: in its place)."""

    again: bool


class Programs:
    """Takes what programs say, and follows what becomes of it."""

    def __init__(self, ground: Ground, lanes: Lanes, watch: Watch) -> None:
        self._ground = ground
        self._lanes = lanes
        self._watch = watch

    def known(self, token: str, event: str) -> InboxRow | None:
        """What the program has said under this name before."""
        address = Address(CHANNEL, ACCOUNT)
        return self._ground.store.read(lambda connection: inbox.find_event(connection, address, _named(token, event)))

    def row(self, id: int) -> InboxRow | None:
        return self._ground.store.read(lambda connection: inbox.find(connection, id))

    async def say(self, saying: Saying) -> InboxRow:
        """Store it; its turn begins by itself. Raises `InputError`, `ConfigError`, `StoreError`."""
        async with self._ground.agents.use(saying.agent) as services:
            told = await enclosed(saying.files, services, session=saying.key)
            conversation = Conversation(services, saying.key)
            now = self._ground.clock.now()
            inbound = Inbound(
                address=saying.address,
                event=_named(saying.token, saying.event),
                text="\n\n".join(filter(None, (saying.text, *told.texts))) or "[an empty message]",
                sender=saying.token,
                trust=saying.trust,
                images=told.images,
                message=saying.mark,
                sampling=saying.sampling,
            )
            key, agent = saying.key, saying.agent
            if self._ground.store.read(lambda connection: sessions.live(connection, key)) is None:
                await self._ground.store.write(
                    lambda connection: sessions.open_live(connection, key, agent=agent, now=now)
                )
            row, new = await receive(conversation, inbound)
            if new:
                self._lanes.poke(key)
                self._ground.tasks.start(self._arrived(conversation, row), f"arrival under {key}")
        return row

    async def _arrived(self, conversation: Conversation, row: InboxRow) -> None:
        try:
            if await arrived(conversation, row):
                self._lanes.sweep()
        except LimpetError as error:
            log.warning("the message %s: %s", row.inbound.event, error)

    async def follow(self, row: InboxRow) -> AsyncGenerator[str | Break | Outcome | None]:
        """Pieces of the answer as they are written, at last its outcome; None when there is nothing to tell yet."""
        heard: asyncio.Queue[Event] = asyncio.Queue()
        if (outcome := self._outcome(row)) is not None:
            yield outcome
            return
        now = self.row(row.id)
        ours = now is not None and now.state == "claimed"  # it may have begun meanwhile

        def listen(key: str, event: Event) -> None:
            if key == row.key:
                heard.put_nowait(event)

        with self._watch.listening(listen):
            while True:
                event = await _next(heard)
                match event:
                    case TurnStarted(turn=turn):
                        found = self.row(row.id)
                        ours = found is not None and found.turn == turn
                    case TextDelta(text=text) if ours:
                        yield text
                    case ToolEnded() | AnswerReset() if ours:
                        yield Break(isinstance(event, AnswerReset))
                    case None | TurnEnded():
                        if (outcome := self._outcome(row)) is not None:
                            yield outcome
                            return
                        yield None
                    case _:
                        pass

    async def stop(self, row: InboxRow) -> None:
        """Nobody waits for the answer any more: stop its turn, or never begin it."""
        found = self.row(row.id)
        if found is None:
            return
        if found.state == "queued":
            await self._ground.store.write(
                lambda connection: inbox.settle(connection, row.id, state="refused", reason="the program has left")
            )
        elif found.state == "claimed":
            async with self._ground.agents.use(keys.agent_of(row.key)) as services:
                await asking.stop(services, row.key)

    def _outcome(self, row: InboxRow) -> Outcome | None:
        """What became of a message, once it is decided."""
        return self._ground.store.read(lambda connection: _look(connection, row.id))


def _named(token: str, event: str) -> str:
    """The name of an event. It begins with our own word, so that no program can give it the name of one of ours."""
    return f"{CHANNEL}:{token}:{event}"


async def _next(heard: asyncio.Queue[Event]) -> Event | None:
    try:
        async with asyncio.timeout(LOOK):
            return await heard.get()
    except TimeoutError:
        return None


def _look(connection: Connection, id: int) -> Outcome | None:
    row = inbox.find(connection, id)
    if row is None:
        return Outcome("failed", "What became of it is not kept any more.")
    if row.state == "claimed":
        return None
    if not row.turn:
        parts = [part for part in outbox.since(connection, row.inbound.address, row.received) if not part.turn]
        if row.state == "queued":
            told = [part for part in parts if part.kind == "notice"]
            return Outcome("kept", _joined(told[-1:])) if told else None
        said = _joined([part for part in parts if part.kind == "reply"][:1])  # it was a command
        return Outcome("done" if row.state == "done" else "failed", said)
    turn = turns.find(connection, row.turn)
    parts = [part for part in outbox.of_turn(connection, row.turn) if part.address == row.inbound.address]
    if turn is None:
        return Outcome("done", _joined(parts))
    spent = usage.of_turn(connection, turn.id)
    if turn.state in ("failed", "interrupted"):
        kind, _, text = turn.error.partition(": ")
        return Outcome("failed", text or _joined(parts) or kind, usage=spent, error=kind)
    text = _joined([part for part in parts if part.kind == "reply"])
    if turn.state == "cancelled":
        return Outcome("cancelled", text, usage=spent)
    return Outcome("done", text, _stop(connection, turn.session), spent)


def _stop(connection: Connection, session: str) -> StopReason:
    """Why the newest answer of a session ended."""
    newest = entries.last_of_kind(connection, session, "assistant")
    for entry in entries.load(connection, session, after=newest - 1, limit=1):
        if isinstance(entry.payload, AssistantEntry):
            return entry.payload.message.stop
    return "stop"


def _joined(parts: list[OutboxRow]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)
