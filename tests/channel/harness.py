"""What the contract suite needs of each platform, and the desk it stands on.

To add a channel: write a `Harness` for it and put it into `HARNESSES` of `test_contract.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Literal, Protocol, Self, get_args

from msgspec import Struct

from limpet.errors import ChannelError, StoreError
from limpet.types.channel import Arrival, Body, Channel, Piece
from limpet.types.envelope import Address, Attachment, Choice

Place = Literal["direct", "group", "thread"]
Fault = Literal["unreachable", "limited", "refused", "lost"]
"""The next send: no connection, too many requests (`retry_after` 2 s), no such chat, done but no answer."""

Skill = Literal[
    "groups", "threads", "mentions", "replies", "files", "buttons", "edited",  # what comes in
    "redelivery",  # what was not acknowledged is given again
    "reconnect",  # there is a connection that can be cut
    "unreachable", "limited", "refused", "lost",  # faults that can be made
]  # fmt: skip
ALL: frozenset[Skill] = frozenset(get_args(Skill))


class Say(Struct, frozen=True):
    """What a person does. `mention`: the bot is named; `reply_to` and `replaces` are the platform's ids."""

    text: str
    sender: Literal["ann", "bob"] = "ann"
    place: Place = "direct"
    mention: bool = False
    reply_to: str = ""
    replaces: str = ""
    file: tuple[str, bytes] | None = None
    pressed: bool = False


class Shown(Struct, frozen=True):
    """A message of ours as people see it now; `files` are names."""

    message: str
    text: str
    reply_to: str = ""
    reaction: str = ""
    files: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()


class Harness(Protocol):
    """One platform with a bot on it, the people `ann` and `bob`, and a group of all three."""

    skills: frozenset[Skill]
    secrets: tuple[str, ...]
    """What must never stand in a log or an error."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def make(self) -> Channel:
        """A new channel of the bot's account."""
        ...

    def address(self, place: Place) -> Address:
        """Where `ann` says something in `place`, as arrivals and pieces name it."""
        ...

    def sender(self, name: Literal["ann", "bob"]) -> str:
        """The stable id of a person."""
        ...

    async def say(self, say: Say) -> str:
        """Somebody says something; gives the platform's id of the message."""
        ...

    async def waiting(self) -> int:
        """How many events the platform would give again to a new connection."""
        ...

    async def shown(self, place: Place) -> list[Shown]:
        """Our messages that stand there now, in order."""
        ...

    async def reaction(self, message: str) -> str:
        """Our reaction on somebody's message; empty: none."""
        ...

    async def typed(self, place: Place) -> int:
        """How often we were seen typing there."""
        ...

    async def attach(self, name: str, data: bytes) -> Attachment:
        """Something that can be sent."""
        ...

    async def fail(self, fault: Fault) -> None: ...

    async def heal(self) -> None:
        """The fault is over, if it was not already."""
        ...

    async def cut(self) -> None:
        """Break the connections that stand."""
        ...


class RecordingDesk:
    """Keeps what it is given. The first `failures` receives raise; `gate` holds each until it is set."""

    def __init__(self, *, failures: int = 0) -> None:
        self.arrivals: list[Arrival] = []
        self.attempts: list[str] = []
        self.states: list[str] = []
        self.failures = failures
        self.gate = asyncio.Event()
        self.gate.set()

    async def receive(self, arrival: Arrival) -> None:
        self.attempts.append(arrival.event)
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full")
        self.arrivals.append(arrival)

    def up(self) -> None:
        self.states.append("up")

    def down(self, reason: str) -> None:
        assert reason
        self.states.append(f"down: {reason}")

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(50):
            while not true():
                await asyncio.sleep(0.005)

    async def got(self, count: int) -> list[Arrival]:
        """Wait for so many arrivals."""
        await self.until(lambda: len(self.arrivals) >= count)
        return self.arrivals


@contextlib.asynccontextmanager
async def running(channel: Channel, desk: RecordingDesk) -> AsyncGenerator[asyncio.Task[None]]:
    """The channel at work: `run` is started again when its connection is lost, as the gateway does."""
    before = desk.states.count("up")
    task = asyncio.create_task(_keep(channel, desk))
    try:
        await desk.until(lambda: task.done() or desk.states.count("up") > before)
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await channel.close()


async def _keep(channel: Channel, desk: RecordingDesk) -> None:
    while True:
        try:
            await channel.run(desk)
        except ChannelError as error:
            desk.down(str(error))
        await asyncio.sleep(0.01)


def piece(
    address: Address,
    text: str,
    *,
    key: str = "k1",
    reply_to: str = "",
    attachments: tuple[Attachment, ...] = (),
    choices: tuple[Choice, ...] = (),
) -> Piece:
    return Piece(address, Body(text, text), key, reply_to=reply_to, attachments=attachments, choices=choices)
