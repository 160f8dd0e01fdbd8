"""What Discord says, as far as we read it; fields by its names (https://docs.discord.com/developers/reference)."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class User(Struct, frozen=True):
    id: str
    username: str = ""
    global_name: str | None = None
    bot: bool = False


class Member(Struct, frozen=True):
    """Somebody in a guild; with messages it stands without its user."""

    roles: tuple[str, ...] = ()
    nick: str | None = None
    user: User | None = None


class Attached(Struct, frozen=True):
    """A file of a message; only what was spoken for the chat has a waveform."""

    filename: str
    url: str
    size: int = 0
    content_type: str | None = None
    waveform: str | None = None


class Reference(Struct, frozen=True):
    message_id: str | None = None
    type: int = 0


class Copied(Struct, frozen=True):
    """What a forwarded message said."""

    content: str = ""
    attachments: tuple[Attached, ...] = ()


class Snapshot(Struct, frozen=True):
    message: Copied


class Emoji(Struct, frozen=True):
    id: str | None = None
    name: str | None = None


class Reaction(Struct, frozen=True):
    emoji: Emoji
    me: bool = False


class Message(Struct, frozen=True, kw_only=True):
    id: str
    channel_id: str
    author: User | None = None
    content: str = ""
    timestamp: str = ""
    edited_timestamp: str | None = None
    guild_id: str | None = None
    member: Member | None = None
    mentions: tuple[User, ...] = ()
    mention_roles: tuple[str, ...] = ()
    mention_everyone: bool = False
    attachments: tuple[Attached, ...] = ()
    message_reference: Reference | None = None
    referenced_message: Message | None = None
    message_snapshots: tuple[Snapshot, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    webhook_id: str | None = None
    type: int = 0


class Place(Struct, frozen=True):
    """A channel, a thread (types 10 to 12) or a talk between two (type 1)."""

    id: str
    type: int = 0
    guild_id: str | None = None
    name: str | None = None
    parent_id: str | None = None
    last_message_id: str | None = None

    @property
    def threaded(self) -> bool:
        return self.type in (10, 11, 12)


class Option(Struct, frozen=True):
    value: str | int | float | bool = ""


class Data(Struct, frozen=True):
    name: str = ""
    custom_id: str = ""
    options: tuple[Option, ...] = ()


class Interaction(Struct, frozen=True, kw_only=True):
    """A slash command (type 2) or a pressed button (type 3). In a guild it has a member, else a user."""

    id: str
    type: int
    token: str
    data: Data = Data()
    channel_id: str = ""
    member: Member | None = None
    user: User | None = None
    message: Message | None = None


class Tags(Struct, frozen=True):
    bot_id: str | None = None


class Role(Struct, frozen=True):
    id: str
    tags: Tags = Tags()


class Guild(Struct, frozen=True):
    id: str
    channels: tuple[Place, ...] = ()
    threads: tuple[Place, ...] = ()
    roles: tuple[Role, ...] = ()


class Ready(Struct, frozen=True):
    user: User
    session_id: str
    resume_gateway_url: str
    guilds: tuple[Guild, ...] = ()


class Starts(Struct, frozen=True):
    remaining: int = 1
    reset_after: int = 0


class Entry(Struct, frozen=True):
    """Where the gateway is, and how many sessions may still be begun today."""

    url: str
    session_start_limit: Starts = Starts()


class Frame(Struct, frozen=True):
    """One message of the gateway."""

    op: int
    d: msgspec.Raw = msgspec.Raw(b"null")
    s: int | None = None
    t: str | None = None


class Named(Struct, frozen=True):
    id: str


class Fault(Struct, frozen=True):
    """The body of a refusal; `retry_after` in seconds."""

    message: str = ""
    code: int = 0
    retry_after: float = 0.0
    everywhere: bool = msgspec.field(name="global", default=False)
