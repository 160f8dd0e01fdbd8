"""The live view: an answer seen in the chat while it is written. Losing it loses nothing.

A preview is a message, so its platform id is in the outbox before it is first changed, and the answer replaces it, also
after a crash. Where messages cannot be changed, finished paragraphs are parts of the outbox of their own (blocks).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from limpet.channels.text.blocks import blocks
from limpet.channels.text.render import render
from limpet.errors import ChannelError, LimpetError, UnsureError
from limpet.gateway.ground import Ground
from limpet.gateway.supervisor import Link
from limpet.store import inbox, outbox, turns
from limpet.types.channel import Piece
from limpet.types.envelope import Address, OutboxState, Part
from limpet.types.event import AnswerReset, Event, TextDelta, ToolBegan, ToolEnded, TurnEnded, TurnStarted
from limpet.types.ids import new_id

log = logging.getLogger(__name__)

WORKING, USING_TOOLS, FAILED = "👀", "⚡", "👎"
"""Reactions to the message that is worked on; the last one stays. All three are among those that Telegram has."""
SLOW = 20.0
"""Seconds without a sign of the model after which the chat is told (DESIGN 13)."""
STILL_WAITING = "[Still waiting for the model to answer.]"
MOST_FAILURES = 3
"""Of the platform in a row, after which a live view is given up."""
TYPING_LEASE = 0.8
"""Share of the time one sign of typing lasts after which it is given again."""
LOOK = 0.5
"""Seconds between two looks when nothing happens."""
SETTLED = 30.0
"""Seconds that the answer waits for a preview to be done with."""
MORE = " …"
ARGUMENTS = 120


@dataclass(slots=True)
class LiveChat:
    """What a turn shows in one chat."""

    turn: str
    address: Address
    message: str
    link: Link
    text: str = ""
    line: str = ""
    mark: str = WORKING
    said: int = 0
    afresh: bool = False
    over: bool = False
    heard: float = 0.0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def take(self, event: Event, *, now: float) -> None:
        """Keep what an event changes in what is to be seen."""
        self.heard = now
        progress = self.link.settings.progress
        if isinstance(event, ToolBegan):
            self.mark = USING_TOOLS
        match event:
            case TextDelta():
                self.text = event.text if self.afresh else self.text + event.text
                self.said = 0 if self.afresh else self.said
                self.afresh, self.line = False, ""
            case AnswerReset():
                self.afresh = True
            case ToolBegan() if progress != "off":
                self.line = f"· {event.name}{_brief(event.arguments) if progress == 'full' else ''}"
            case ToolBegan():
                pass
            case ToolEnded():
                self.afresh = True
            case _:
                return
        self.changed.set()


class Lives:
    """The live views of all turns. `on_event` listens to what happens in them."""

    def __init__(self, ground: Ground, links: Mapping[tuple[str, str], Link]) -> None:
        self._ground = ground
        self._links = links
        self._chats: dict[tuple[str, Address], LiveChat] = {}
        self._turns: dict[str, str] = {}
        self._settled: set[str] = set()

    def on_event(self, key: str, event: Event) -> None:
        if isinstance(event, TurnStarted):
            self._turns[key] = event.turn
            self._begin(event.turn)
        turn = self._turns.get(key, "")
        if not turn:
            return
        if isinstance(event, TurnEnded):
            self.over(key)
            return
        chats = [chat for (name, _), chat in self._chats.items() if name == turn]
        if turn in self._settled and isinstance(event, TextDelta | ToolBegan):
            self._settled.discard(turn)
            chats = self._begin(turn)
        for chat in chats:
            chat.take(event, now=self._ground.clock.monotonic())

    def over(self, key: str) -> None:
        """No turn runs under `key` any more."""
        turn = self._turns.pop(key, "")
        self._settled.discard(turn)
        for (name, _), chat in tuple(self._chats.items()):
            if name == turn:
                chat.over = True
                chat.changed.set()

    async def settle(self, turn: str, address: Address) -> None:
        """The answer of `turn` is about to be delivered to `address`: its live view ends first."""
        chat = self._chats.get((turn, address))
        if chat is None or chat.task is None:
            return
        chat.over = True
        chat.changed.set()
        await asyncio.wait((chat.task,), timeout=SETTLED)
        if turn in self._turns.values():
            self._settled.add(turn)  # it goes on, and what it says next is shown again

    def _begin(self, turn: str) -> list[LiveChat]:
        """Show `turn` in the chats that it answers."""
        rows = self._ground.store.read(lambda connection: inbox.of_turn(connection, turn))
        begun: list[LiveChat] = []
        for address, message in {row.inbound.address: row.inbound.message for row in rows}.items():
            link = self._links.get((address.channel, address.account))
            if link is None or (turn, address) in self._chats or not _can_show(link, message):
                continue
            chat = LiveChat(turn, address, message, link, heard=self._ground.clock.monotonic())
            self._chats[turn, address] = chat
            chat.task = self._ground.tasks.start(self._show(chat), f"live view in {address.channel}")
            begun.append(chat)
        return begun

    async def _show(self, chat: LiveChat) -> None:
        view = _View(self._ground, chat)
        try:
            await view.run()
        except LimpetError as error:
            log.info("live view in %s ended: %s", chat.address.channel, error)
        finally:
            del self._chats[chat.turn, chat.address]


class _View:
    """The hand of one `LiveChat`: does what has to be done on the platform, one thing at a time."""

    def __init__(self, ground: Ground, chat: LiveChat) -> None:
        self._ground = ground
        self._chat = chat
        self._settings = chat.link.settings
        self._channel = chat.link.channel
        self._traits = chat.link.channel.traits
        self._message: str | None = None
        self._marked = ""
        self._shown: str = ""
        self._line: str = ""
        self._edited = self._typed = float("-inf")
        self._told = False

    async def run(self) -> None:
        """Show what is to be seen until the turn is over."""
        chat, failures = self._chat, 0
        marks = self._settings.reactions and self._traits.reactions and bool(chat.message)
        while not chat.over and failures < MOST_FAILURES:
            chat.changed.clear()
            if marks and chat.mark != self._marked:
                await self._react(chat.mark)
            try:
                await self._step()
                failures = 0
            except ChannelError as error:
                failures += 1
                log.info("live view in %s: %s", chat.address.channel, error)
            await self._wait()
        if marks:
            turn = self._ground.store.read(lambda connection: turns.find(connection, chat.turn))
            await self._react(FAILED if turn is not None and turn.state == "failed" else "")

    async def _react(self, emoji: str) -> None:
        if emoji == self._marked:
            return
        self._marked = emoji
        try:
            await self._channel.react(self._chat.address, self._chat.message, emoji)
        except ChannelError as error:
            log.info("a reaction in %s: %s", self._chat.address.channel, error)

    async def _wait(self) -> None:
        """Until something has changed, and the platform may be bothered again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._chat.changed.wait()
        rest = self._edited + self._traits.edit_every - self._ground.clock.monotonic()
        if not self._chat.over and rest > 0:
            await asyncio.sleep(min(rest, LOOK))

    async def _step(self) -> None:
        now, chat = self._ground.clock.monotonic(), self._chat
        if self._traits.typing and now - self._typed >= self._traits.typing * TYPING_LEASE:
            self._typed = now
            await self._channel.typing(chat.address)
        if not self._told and not chat.text and now - chat.heard > SLOW:
            self._told = True
            await self._queue(STILL_WAITING, f"slow:{chat.turn}")
        if not self._traits.edit_every:
            await self._say()
        elif now - self._edited >= self._traits.edit_every:
            await self._update(now)

    async def _say(self) -> None:
        """Where messages cannot be changed: finished paragraphs, and lines about tools, as messages of their own."""
        chat = self._chat
        if chat.line and chat.line != self._line:
            self._line = chat.line
            await self._queue(chat.line, new_id("p"))
        if not (self._settings.live and self._traits.blocks):
            return
        for block in blocks(chat.text, False, start=chat.said):
            chat.said += len(block)
            await self._queue(block, new_id("p"), block=True)

    async def _queue(self, text: str, key: str, *, block: bool = False) -> None:
        chat, now = self._chat, self._ground.clock.now()
        part = Part(chat.address, text, key, "block" if block else "notice")
        turn = chat.turn if block else ""
        await self._ground.store.write(
            lambda connection: outbox.queue(connection, part, session="", turn=turn, now=now)
        )
        self._ground.nudges.wake()

    async def _update(self, now: float) -> None:
        """Have the preview read like the answer so far."""
        chat = self._chat
        text = chat.text if self._settings.live else ""
        if not text.strip() and not chat.line:
            return
        bodies = render(f"{text}{MORE}\n\n{chat.line}" if chat.line else f"{text}{MORE}", self._traits)
        if not bodies or bodies[0].markup == self._shown:
            return
        if self._message is None and self._ground.store.read(lambda found: outbox.waiting(found, chat.address)):
            return  # what was said before comes first
        self._edited, self._shown = now, bodies[0].markup
        piece = Piece(chat.address, bodies[0], key=new_id("v"), quiet=True)
        if self._message is None:
            self._message = await self._begin(piece)
        elif self._message:
            await self._channel.edit(piece, self._message)

    async def _begin(self, piece: Piece) -> str:
        """Put the preview there, or find the one from before a crash; empty when it may or may not be there."""
        chat, ground = self._chat, self._ground
        found = ground.store.read(lambda connection: outbox.previews(connection, chat.turn, chat.address))
        if found:
            await self._channel.edit(piece, found[0].platform_id)
            return found[0].platform_id
        part, now = Part(chat.address, "", piece.key, "preview"), ground.clock.now()
        row = await ground.store.write(
            lambda connection: outbox.show(connection, part, turn=chat.turn, owner=ground.owner, now=now)
        )
        state: OutboxState = "failed"
        message = ""
        try:
            message = await self._channel.send(piece)
            state = "sent"
        except UnsureError:
            state = "unknown"
        finally:
            await ground.store.write(
                lambda connection: outbox.settle(connection, row, state=state, platform_id=message)
            )
        return message


def _can_show(link: Link, message: str) -> bool:
    """Whether anything of a turn can be seen over a channel while it goes on."""
    traits, settings = link.channel.traits, link.settings
    marks = traits.reactions and settings.reactions and bool(message)
    return bool(traits.typing or traits.edit_every or traits.blocks or marks)


def _brief(arguments: str) -> str:
    said = " ".join(arguments.split())
    return f" {said[:ARGUMENTS]}…" if len(said) > ARGUMENTS else f" {said}"
