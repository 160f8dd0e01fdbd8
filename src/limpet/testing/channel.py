"""`FakeChannel`: the port `Channel` over a platform that a test holds in its hands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from limpet.errors import (
    ChannelError,
    InputError,
    NotAcceptedError,
    NotReadyError,
    RefusedError,
    StoreError,
    UnsureError,
)
from limpet.testing.platform import (
    Again,
    Cut,
    Doing,
    Edited,
    FakeFile,
    FakePlatform,
    Kind,
    Offered,
    Reacted,
    Removed,
    Said,
    Sent,
    Shown,
    Switch,
    Taken,
    Trouble,
    Typed,
)
from limpet.types.channel import Arrival, Body, Desk, File, MenuEntry, Piece, Traits
from limpet.types.envelope import Address

EVERYTHING = Traits(edit_every=0.001, typing=5.0, reactions=True, buttons=True, upload=10_000_000)
"""A platform that can do all there is, without waiting."""
_Done = TypeVar("_Done")
_TICK = 0.01
"""Seconds between two looks at the platform."""


class Ways(Struct, frozen=True):
    """How something is said, beside text, sender and chat: see `Arrival`."""

    thread: str = ""
    sender_name: str = ""
    chat_name: str = ""
    in_group: bool = False
    mentioned: bool = False
    to_all: bool = False
    replaces: str = ""
    reply_to: str = ""
    album: str = ""
    pressed: bool = False
    files: tuple[FakeFile, ...] = ()


PLAINLY = Ways()


class FakePeople:
    """What a test does on a platform: says things, sees what stands there, waits, makes it fail."""

    def __init__(self, name: str, account: str, platform: FakePlatform) -> None:
        self._name = name
        self._account = account
        self.platform = platform

    def address(self, chat: str, thread: str = "") -> Address:
        return Address(self._name, self._account, chat, thread)

    async def say(self, text: str, *, sender: str = "ann", chat: str = "", ways: Ways = PLAINLY) -> Said:
        """`sender` says `text` in `chat` (empty: alone with the agent); gives what the platform made of it."""
        quoted = {one.message: one.text for one in self.visible(chat or sender, ways.thread)}
        said = self.platform.put(
            lambda number: Said(
                event=f"e{number}",
                message=ways.replaces or f"m{number}",
                address=self.address(chat or sender, ways.thread),
                sender=sender,
                text=text,
                sender_name=ways.sender_name or sender.title(),
                chat_name=ways.chat_name,
                in_group=ways.in_group,
                mentioned=ways.mentioned,
                to_all=ways.to_all,
                replaces=ways.replaces,
                reply_to=ways.reply_to,
                quoted=quoted.get(ways.reply_to, ""),
                album=ways.album,
                pressed=ways.pressed,
                sent=time.time_ns() // 1_000_000,
                files=ways.files,
            )
        )
        await asyncio.sleep(0)
        return said

    def visible(self, chat: str, thread: str = "") -> tuple[Shown, ...]:
        """All messages that stand in a chat now, in order."""
        return self.platform.visible(chat, thread)

    def answers(self, chat: str, thread: str = "") -> tuple[str, ...]:
        """The texts of ours that stand in a chat now, in order."""
        return tuple(one.text for one in self.visible(chat, thread) if not one.sender)

    async def until(self, true: Callable[[], bool], *, within: float = 10.0) -> None:
        """Wait until `true()`; raises `TimeoutError` after `within` seconds."""
        async with asyncio.timeout(within):
            while not true():
                await asyncio.sleep(_TICK)

    async def settled(self, *, within: float = 10.0) -> None:
        """Wait until the channel has acknowledged all that was said."""
        await self.until(lambda: not self.platform.waiting(), within=within)

    def fail(self, kind: Kind, *, on: Doing = "send", times: int = 1, seconds: float = 0.0, chat: str = "") -> None:
        """The next `times` doings meet a trouble; troubles of one doing are met in the order they were set."""
        self.platform.put(lambda number: Trouble(number, kind, on=on, times=times, seconds=seconds, chat=chat))

    def ready(self, on: bool) -> None:
        """Whether the platform lets anybody in."""
        self.platform.put(lambda _: Switch("ready", on))

    def doubled(self, on: bool) -> None:
        """Whether each event is given twice at once."""
        self.platform.put(lambda _: Switch("doubled", on))

    def shuffled(self, on: bool) -> None:
        """Whether of several waiting events the newest is given first."""
        self.platform.put(lambda _: Switch("shuffled", on))

    def again(self, said: Said) -> None:
        """The platform gives an event once more, though it was acknowledged."""
        self.platform.put(lambda _: Again(said.event))

    def cut(self) -> None:
        """The connection breaks: `run` raises."""
        self.platform.put(lambda _: Cut())


class FakeChannel(FakePeople):
    """One account on a `FakePlatform`, its own in memory unless one is passed.

    A test says things with `say`, reads `visible`, `answers` and `platform.records`, waits with `until`, and makes it
    fail with `fail`, `cut`, `ready`, `doubled`, `shuffled` and `again`.
    """

    def __init__(
        self,
        *,
        name: str = "fake",
        account: str = "main",
        traits: Traits = EVERYTHING,
        platform: FakePlatform | None = None,
    ) -> None:
        super().__init__(name, account, platform or FakePlatform())
        self._linked = False
        self.traits = traits

    @property
    def name(self) -> str:
        return self._name

    @property
    def account(self) -> str:
        return self._account

    async def run(self, desk: Desk) -> None:
        trouble = self.platform.meet("connect")
        if trouble is not None:
            await _suffer(trouble, "connect")
        cuts = self.platform.cuts
        told = False
        try:
            while True:
                self._linked = self.platform.is_on("ready")
                if self._linked and not told:
                    desk.up()
                elif told and not self._linked:
                    desk.down("the platform lets nobody in")
                told = self._linked
                if self.platform.cuts > cuts:
                    raise ChannelError("the connection was cut")
                if not self._linked or not await self._give(desk):
                    await asyncio.sleep(_TICK)
        finally:
            self._linked = False

    async def _give(self, desk: Desk) -> bool:
        """Hand over the next event that waits; gives whether one was taken."""
        waiting = self.platform.waiting()
        if not waiting:
            return False
        said = waiting[-1 if self.platform.is_on("shuffled") else 0]
        arrival = _arrival(said)
        times = 2 if self.platform.is_on("doubled") else 1
        given = await asyncio.gather(*(desk.receive(arrival) for _ in range(times)), return_exceptions=True)
        failed = next((one for one in given if one is not None), None)
        if isinstance(failed, StoreError):
            desk.down("what came in could not be stored")
            return False
        if failed is not None:
            raise failed
        self.platform.put(lambda _: Taken(said.event))
        desk.up()
        return True

    async def close(self) -> None:
        self._linked = False

    async def send(self, piece: Piece) -> str:
        self._check(piece)
        if self.traits.repeatable:
            for sent in self.platform.of(Sent):
                if sent.piece.key == piece.key:
                    return sent.message
        record = await self._do("send", piece.address, lambda: self._sent(piece))
        return record.message

    def _sent(self, piece: Piece) -> Sent:
        at = time.time_ns() // 1_000_000
        return self.platform.put(lambda number: Sent(f"m{number}", piece, at))

    async def edit(self, piece: Piece, message: str) -> None:
        self._check(piece)
        if not self.traits.edit_every:
            raise RefusedError("messages cannot be changed here")
        self._find(piece.address, message)
        await self._do("edit", piece.address, lambda: self.platform.put(lambda _: Edited(message, piece)))

    async def remove(self, address: Address, message: str) -> None:
        self._find(address, message)
        await self._do("remove", address, lambda: self.platform.put(lambda _: Removed(message, address)))

    async def typing(self, address: Address) -> None:
        if self.traits.typing:
            await self._do("typing", address, lambda: self.platform.put(lambda _: Typed(address)))

    async def react(self, address: Address, message: str, emoji: str) -> None:
        if not self.traits.reactions:
            raise RefusedError("there are no reactions here")
        await self._do("react", address, lambda: self.platform.put(lambda _: Reacted(message, address, emoji)))

    async def offer(self, menu: Iterable[MenuEntry]) -> None:
        names = tuple(entry.name for entry in menu)
        await self._do("offer", self.address(""), lambda: self.platform.put(lambda _: Offered(names)))

    async def _do(self, doing: Doing, address: Address, act: Callable[[], _Done]) -> _Done:
        if self.traits.needs_link and not self._linked:
            raise NotReadyError("there is no connection yet")
        trouble = self.platform.meet(doing, address.chat)
        if trouble is not None and trouble.kind == "lose":
            act()
        if trouble is not None:
            await _suffer(trouble, doing)
        return act()

    def _find(self, address: Address, message: str) -> None:
        found = self.platform.message(message)
        if found is None or found.sender or found.address != address:
            raise RefusedError("there is no such message")

    def _check(self, piece: Piece) -> None:
        size = measure(piece.body, self.traits)
        limit = min(self.traits.limit, self.traits.caption) if piece.attachments else self.traits.limit
        if size > limit:
            raise RefusedError(f"the message is too long: {size} of {limit} {self.traits.unit}")
        if not size and not piece.attachments:
            raise RefusedError("the message is empty")
        if any(not self.traits.upload or one.size > self.traits.upload for one in piece.attachments):
            raise RefusedError("the file is too large")


def measure(body: Body, traits: Traits) -> int:
    """The size of what is sent, in the unit of `traits`."""
    if traits.unit == "bytes":
        return len(body.markup.encode())
    if traits.unit == "utf16":
        return len(body.markup.encode("utf-16-le")) // 2
    return len(body.markup)


async def _suffer(trouble: Trouble, doing: str) -> None:
    match trouble.kind:
        case "refuse":
            raise NotAcceptedError(f"{doing}: connection refused")
        case "limit":
            raise NotAcceptedError(f"{doing}: too many requests", retry_after=trouble.seconds)
        case "lose" | "unsure":
            raise UnsureError(f"{doing}: the connection was lost before the answer")
        case "reject":
            raise RefusedError(f"{doing}: not here, not ever")
        case "slow":
            await asyncio.sleep(trouble.seconds)


def _arrival(said: Said) -> Arrival:
    fields = msgspec.structs.asdict(said)
    fields["files"] = tuple(
        File(one.name, one.mime, _fetch(one.data), size=len(one.data), voice=one.voice) for one in said.files
    )
    return Arrival(**fields)


def _fetch(data: bytes) -> Callable[[int], Awaitable[bytes]]:
    async def fetch(limit: int) -> bytes:
        if len(data) > limit:
            raise InputError(f"the file has {len(data)} bytes, more than {limit}")
        return data

    return fetch
