"""Delivery: what waits in the outbox arrives, once, in order within each chat.

A part is attempted by one process: the intent is committed, the platform is asked, the outcome is committed. What may
have arrived is never blindly sent again; where the platform drops repetitions, or the part replaces a preview, it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Mapping

from msgspec import structs

from limpet.channels.media import sendable
from limpet.channels.text.render import render, sizes
from limpet.config.channels import DeliverySettings
from limpet.errors import ChannelError, NotAcceptedError, NotReadyError, RefusedError, StoreError, UnsureError
from limpet.gateway.ground import Ground
from limpet.gateway.live import Lives
from limpet.gateway.pile import pile_up
from limpet.gateway.supervisor import Link
from limpet.store import outbox, sessions
from limpet.store.sql import Connection
from limpet.types.channel import Piece, Traits
from limpet.types.envelope import Address, Body, OutboxRow, OutboxState
from limpet.types.hook import MessageSending

log = logging.getLogger(__name__)

PAUSES = (5.0, 25.0, 120.0, 600.0)
"""Seconds before the second try, the third, …, ± 20 % (FEATURES I7)."""
LOOK_AGAIN = 30.0
"""Seconds between two looks at a chat whose channel is not there."""
RESERVE = 90
"""Of what a message may hold, kept free for `MISSING`."""
MISSING = "[The message before this one may not have arrived.]"
LEFT_OUT = "[The file {name} ({size:,} bytes) cannot be sent here: too large, or files are not possible at all.]"
SEND = 120.0
"""Seconds for one send, whatever the adapter does; after that it may have arrived."""
COMMIT_AGAIN = 5.0
"""Seconds until an outcome that could not be stored is stored after all."""
EMPTY = Body("", "")


class Delivery:
    """Delivers over the `links`, by (channel, account). `settings` gives the rules as they are now."""

    def __init__(
        self,
        ground: Ground,
        links: Mapping[tuple[str, str], Link],
        lives: Lives,
        *,
        settings: Callable[[], DeliverySettings],
    ) -> None:
        self._ground = ground
        self._links = links
        self._lives = lives
        self._settings = settings
        self._chats: dict[Address, asyncio.Event] = {}
        self._resting: set[Address] = set()
        self._random = random.Random()

    @property
    def busy(self) -> bool:
        """Whether something is being delivered right now, not merely waiting for its time or its channel."""
        return any(chat not in self._resting for chat in self._chats)

    def sweep(self) -> None:
        """See to every chat for which something waits."""
        for chat in self._ground.store.read(outbox.chats_waiting):
            self.poke(chat)

    def poke(self, chat: Address) -> None:
        """See to a chat; its thread does not matter."""
        chat = structs.replace(chat, thread="")
        if chat in self._chats:
            self._chats[chat].set()
            return
        self._chats[chat] = asyncio.Event()
        self._ground.tasks.start(self._see_to(chat), f"delivery to {chat.channel} {chat.chat}")

    async def _see_to(self, chat: Address) -> None:
        """Deliver what waits for a chat, part by part, until nothing does."""
        poked = self._chats[chat]
        try:
            while True:
                poked.clear()
                rows = self._ground.store.read(lambda connection: outbox.waiting(connection, chat))
                if not rows:
                    return
                pause = await self._step(rows)
                if pause > 0:
                    self._resting.add(chat)
                    await _either(poked, self._up(chat), pause)
                    self._resting.discard(chat)
        finally:
            self._resting.discard(chat)
            del self._chats[chat]

    def _up(self, chat: Address) -> asyncio.Event | None:
        link = self._link(chat)
        return link.connected if link is not None and not link.connected.is_set() else None

    def _link(self, chat: Address) -> Link | None:
        return self._links.get((chat.channel, chat.account))

    async def _step(self, rows: list[OutboxRow]) -> float:
        """Do the next thing about the first of `rows`; gives the seconds to wait before the one after."""
        row, now = rows[0], self._ground.clock.now()
        link = self._link(row.address)
        if row.state == "queued" and now - row.created > self._settings().minutes * 60_000:
            await self._settle(row, "expired", error="it could not be sent for too long")
            return 0.0
        if link is None or (link.channel.traits.needs_link and not link.connected.is_set()):
            return LOOK_AGAIN
        if row.due > now:
            return (row.due - now) / 1000
        if row.state == "queued" and row.attempts == 0 and await pile_up(self._ground, rows, now=now):
            return 0.0
        await self._lives.settle(row.turn, row.address)
        bodies: tuple[Body, ...] | None = None
        if row.body is None and row.state == "queued":
            row, bodies = self._made(row, link.channel.traits)
            if not bodies:
                await self._settle(row, "sent")
                return 0.0
        return await self._attempt(row, link, bodies)

    def _made(self, row: OutboxRow, traits: Traits) -> tuple[OutboxRow, tuple[Body, ...]]:
        """The messages in which a part goes out, none when all of it has been said; and the part with those files that
        the platform takes: of the others the text says so.
        """
        text = row.text
        if row.kind == "reply" and row.turn and traits.blocks:
            said = self._ground.store.read(lambda connection: outbox.blocks(connection, row.turn, row.address))
            text = rest_of(text, said)
        fit, left = sendable(row.beside.attachments, traits.upload)
        if left:
            text = "\n\n".join(filter(None, (text, *(LEFT_OUT.format(name=one.name, size=one.size) for one in left))))
            row = structs.replace(row, beside=structs.replace(row.beside, attachments=fit))
        room = structs.replace(traits, limit=max(traits.limit - RESERVE, traits.limit // 2))
        bodies = render(text, room) if text.strip() else ()
        if fit and (not bodies or sizes(room)(bodies[-1].markup) > traits.caption):
            bodies = (*bodies, EMPTY)
        return row, bodies

    async def _attempt(self, row: OutboxRow, link: Link, bodies: tuple[Body, ...] | None) -> float:
        """One delivery attempt: intent (with what the part is made into), act, outcome."""
        await self._tell(row, bodies)
        preview = self._preview(row, link)
        again = preview is not None or link.channel.traits.repeatable

        def intend(connection: Connection) -> tuple[OutboxState, OutboxRow | None, bool]:
            if bodies is not None:
                outbox.split(connection, row, bodies)
            state = outbox.attempt(connection, row.id, owner=self._ground.owner, again=again)
            missing = state == "attempting" and outbox.missing_before(connection, row)
            return state, outbox.find(connection, row.id), missing

        state, found, missing = await self._ground.store.write(intend)
        if state == "queued":
            return LOOK_AGAIN  # another process is at it
        if state != "attempting" or found is None:
            return 0.0
        try:
            async with asyncio.timeout(SEND):
                message = await self._put(_piece(found, missing=missing), link, preview)
        except ChannelError as error:
            return await self._failed(row, error)
        except TimeoutError:
            return await self._failed(row, UnsureError(f"no answer for {SEND:.0f} s"))
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):  # then the next process finds out by itself
                await self._ground.store.write(_unsure(row, "interrupted while it was sent"))
            raise
        except Exception as error:  # a fault of the adapter: it may have sent it
            log.exception("delivery to %s", row.address.channel)
            return await self._failed(row, UnsureError(f"{type(error).__name__}: {error}"))
        await self._sent(row, message, preview)
        link.sent()
        self._ground.nudges.wake()
        return 0.0

    async def _tell(self, row: OutboxRow, bodies: tuple[Body, ...] | None) -> None:
        """Tell hooks of a message that is about to leave, before its first try."""
        if row.attempts or not self._ground.agents.has_hooks:
            return
        session = self._ground.store.read(lambda connection: sessions.find(connection, row.session))
        text = (bodies[0] if bodies else row.body or EMPTY).plain
        event = MessageSending(row.session, row.address.channel, row.address.chat, text)
        await self._ground.agents.tell(event, session.agent if session is not None else "main")

    async def _failed(self, row: OutboxRow, error: ChannelError) -> float:
        """What becomes of a part that was not sent, or may have been; gives the seconds to wait."""
        match error:
            case NotReadyError():
                await self._defer(row, LOOK_AGAIN, error, counts=False)
            case RefusedError():
                await self._settle(row, "failed", error=str(error))
            case UnsureError():
                await self._settle(row, "unknown", error=str(error))
            case _:
                await self._again(row, error)
        return 0.0

    def _preview(self, row: OutboxRow, link: Link) -> OutboxRow | None:
        """The preview that this part replaces: the first part of what its turn says, without files and buttons."""
        if not row.turn or row.kind == "block" or row.place != row.id or not link.channel.traits.edit_every:
            return None
        if row.beside.attachments or row.beside.choices:
            return None
        found = self._ground.store.read(lambda connection: outbox.previews(connection, row.turn, row.address))
        return found[0] if found else None

    async def _put(self, piece: Piece, link: Link, preview: OutboxRow | None) -> str:
        """Put a message on the platform, over its preview where there is one that can still be changed."""
        if preview is not None:
            try:
                await link.channel.edit(piece, preview.platform_id)
                return preview.platform_id
            except RefusedError as error:
                log.info("a preview could not be replaced, the answer is sent anew: %s", error)
        return await link.channel.send(piece)

    async def _sent(self, row: OutboxRow, message: str, preview: OutboxRow | None) -> None:
        def work(connection: Connection) -> None:
            outbox.settle(connection, row.id, state="sent", platform_id=message)
            if preview is not None:
                outbox.use_up(connection, preview.id)

        await self._commit(work)

    async def _commit(self, work: Callable[[Connection], None]) -> None:
        """Store an outcome, however often it takes: else the part would count as being sent for ever."""
        while True:
            try:
                return await self._ground.store.write(work)
            except StoreError as error:
                log.error("what became of a message cannot be stored yet: %s", error)
                await asyncio.sleep(COMMIT_AGAIN)

    async def _again(self, row: OutboxRow, error: ChannelError) -> None:
        """It did not arrive: once more later, unless it was tried often enough."""
        if row.attempts + 1 >= self._settings().tries:
            await self._settle(row, "failed", error=f"given up after {row.attempts + 1} tries: {error}")
            return
        pause = PAUSES[min(row.attempts, len(PAUSES) - 1)] * self._random.uniform(0.8, 1.2)
        wanted = error.retry_after if isinstance(error, NotAcceptedError) else 0.0
        await self._defer(row, max(pause, wanted), error)

    async def _defer(self, row: OutboxRow, pause: float, error: ChannelError, *, counts: bool = True) -> None:
        due = self._ground.clock.now() + round(pause * 1000)
        await self._commit(
            lambda connection: outbox.defer(connection, row.id, due=due, error=str(error), counts=counts)
        )

    async def _settle(self, row: OutboxRow, state: OutboxState, *, error: str = "") -> None:
        if error:
            log.warning("outbox %d to %s is %s: %s", row.id, row.address.channel, state, error)
        await self._commit(lambda connection: outbox.settle(connection, row.id, state=state, error=error))
        self._ground.nudges.wake()


def _unsure(row: OutboxRow, why: str) -> Callable[[Connection], None]:
    return lambda connection: outbox.settle(connection, row.id, state="unknown", error=why)


def rest_of(text: str, said: list[str]) -> str:
    """What of `text` was not yet said, when what was `said` last, piece by piece, is its beginning."""
    for start in range(len(said)):
        rest = text
        for piece in said[start:]:
            if not rest.lstrip().startswith(piece.strip()):
                break
            rest = rest.lstrip()[len(piece.strip()) :]
        else:
            return rest
    return text


def _piece(row: OutboxRow, *, missing: bool) -> Piece:
    body = row.body or EMPTY
    if missing:
        body = Body(f"{MISSING}\n{body.markup}", f"{MISSING}\n{body.plain}")
    return Piece(
        address=row.address,
        body=body,
        key=row.key,
        reply_to=row.beside.reply_to,
        attachments=row.beside.attachments,
        choices=row.beside.choices,
        quiet=row.kind == "notice",
    )


async def _either(poked: asyncio.Event, up: asyncio.Event | None, pause: float) -> None:
    """Return when something new waits, the channel is connected, or after `pause` seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in (poked, up) if event is not None]
    try:
        await asyncio.wait(waits, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
