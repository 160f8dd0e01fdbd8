"""Channels: what a chat platform gives, takes and can do. All times are UTC milliseconds.

A channel turns what its platform says into `Arrival`s and puts `Piece`s on the platform. It decides nothing: who may
speak, which agent answers, what is sent when and whether again is the gateway's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from msgspec import Struct

from limpet.types.envelope import Address, Attachment, Body, Choice

Markup = Literal["plain", "telegram", "discord", "slack", "matrix", "irc", "xmpp", "email", "markdown"]
"""Into what the Markdown of an answer is turned."""

ALL = 10**9
"""A limit where there is none."""


class Traits(Struct, frozen=True):
    """What a platform can do, as data (DESIGN 1.5).

    `limit` is what one message may hold *as sent*, counted in `unit`; `lines` how many lines, 0 = any. `edit_every` is
    seconds between two edits of a message, 0 = it cannot be edited; `typing` how long one sign of typing lasts, 0 =
    there is none. `upload` is the bytes of one attachment, 0 = none can be sent; `caption` what a text beside one may
    hold. `lost_on_5xx`: an answer 5xx to a send leaves open whether it arrived; else it did not. `repeatable`: sending
    a piece of the same key again is safe, for the platform drops it. `needs_link`: nothing can be sent while the
    connection is down. `blocks`: an answer comes in
    several messages while it is written, where it cannot be edited.
    """

    markup: Markup = "plain"
    limit: int = 4_000
    unit: Literal["utf16", "characters", "bytes"] = "characters"
    lines: int = 0
    edit_every: float = 0.0
    typing: float = 0.0
    reactions: bool = False
    buttons: bool = False
    upload: int = 0
    caption: int = 1_000
    lost_on_5xx: bool = True
    repeatable: bool = False
    needs_link: bool = True
    blocks: bool = False


class Piece(Struct, frozen=True):
    """One message to be sent. `key` is the same however often it is tried; `reply_to` the platform's id of a message.

    A notice (`quiet`) need not ring.
    """

    address: Address
    body: Body
    key: str
    reply_to: str = ""
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choice, ...] = ()
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """Something attached to a message. `size` in bytes, 0 = not known; `fetch(limit)` gives at most so many bytes.

    `fetch` raises `ChannelError` when it cannot be had and `InputError` when it is larger. `voice`: a recording that
    was spoken for this chat.
    """

    name: str
    mime: str
    fetch: Callable[[int], Awaitable[bytes]]
    size: int = 0
    voice: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message as a platform gave it.

    `event` names it for good within channel and account (each channel documents which id that is); `message` is the
    platform's id of the message, by which it can be answered, edited and reacted to. `sender` is a stable id, never a
    display name; `sender_name` and `chat_name` are for people and the model only. In a group, `mentioned` says that
    the bot is meant: by name, by a reply to it, or by a command with its name; `to_all` that everybody is.
    `replaces` is the `message` that this one is the new wording of. `quoted` is the text it answers. `album` is shared
    by messages that one person sent as one. `pressed`: it is a button, `text` is what the button says for him.
    `space`, `parent` and `roles` are where a chat belongs (guild, team), what it is a thread of and what the sender is
    there: bindings go by them. `sent` 0 = not known. `reply_to` is the
    `message` that it answers.
    """

    address: Address
    event: str
    sender: str
    text: str
    message: str = ""
    sender_name: str = ""
    chat_name: str = ""
    in_group: bool = False
    mentioned: bool = False
    to_all: bool = False
    replaces: str = ""
    quoted: str = ""
    album: str = ""
    pressed: bool = False
    space: str = ""
    parent: str = ""
    roles: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    sent: int = 0
    reply_to: str = ""


class MenuEntry(Struct, frozen=True):
    """A slash command for the platform's native menu; `name` without the slash."""

    name: str
    about: str


class Desk(Protocol):
    """Called by a channel with what comes in; provided by `gateway`."""

    async def receive(self, arrival: Arrival) -> None:
        """Store it. Once this returns it is on disk, or is not for us: tell the platform that we have it.

        Raises `StoreError` when it could not be stored: do not acknowledge, let the platform give it again.
        """
        ...

    def up(self) -> None:
        """Messages flow: say so after each proof of it (a poll that was answered, a connection that is ready)."""
        ...

    def down(self, reason: str) -> None:
        """Messages do not flow, and the channel goes on trying by itself; `reason` is for the owner, in a sentence."""
        ...


class Channel(Protocol):
    """Called by the gateway; provided by each module of `channels`, and `FakeChannel`.

    One object is one account on one platform; `name` and `account` are those of its addresses. Nothing is connected
    before `run`. All that send raise, and nothing else:
    `NotReadyError` (no connection yet: not even an attempt), `NotAcceptedError` (it certainly did not arrive: again
    later), `RefusedError` (it never will), `UnsureError` (it may have arrived).
    """

    @property
    def name(self) -> str: ...

    @property
    def account(self) -> str: ...

    @property
    def traits(self) -> Traits: ...

    async def run(self, desk: Desk) -> None:
        """Connect and give `desk` what comes in, until cancelled. Raises `ChannelError` when the connection is lost.

        Whoever calls starts it again after a while. A `RefusedError` (the token is wrong) is not tried so soon.
        """
        ...

    async def close(self) -> None:
        """Give back connections; after `run` has ended."""
        ...

    async def send(self, piece: Piece) -> str:
        """Put one message on the platform; gives its id there, empty where it has none."""
        ...

    async def edit(self, piece: Piece, message: str) -> None:
        """Make the message `message` of ours read like `piece`. Same errors; `RefusedError` when it is gone."""
        ...

    async def remove(self, address: Address, message: str) -> None:
        """Take the message `message` of ours away."""
        ...

    async def typing(self, address: Address) -> None:
        """Show that an answer is being written, for `traits.typing` seconds."""
        ...

    async def react(self, address: Address, message: str, emoji: str) -> None:
        """Put our one reaction on `message`; empty: take it away."""
        ...

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        """Show the slash commands in the platform's menu, where it has one."""
        ...


__all__ = [
    "ALL",
    "Arrival",
    "Body",
    "Channel",
    "Desk",
    "File",
    "Markup",
    "MenuEntry",
    "Piece",
    "Traits",
]
