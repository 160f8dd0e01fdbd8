"""The WebSocket protocol, version 1: frames of JSON text. Its schema is published at `/protocol.json`.

1. The client sends `connect` with its token and the chats it wants to follow, each with a cursor or none.
2. The server answers `hello`, then an `event` for each message after the cursors, then what happens from now on.
3. Each `request` gets one `response` of the same id. `send` with a `key` is done once, however often it is asked for.

Events with a cursor are messages: they are kept, and given again to who comes back with an older cursor. Events without
one are a view of what is going on right now; losing them loses nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

VERSION = 1
MAX_FRAME = 1_048_576
"""Bytes of one frame from a client."""
MAX_CHATS = 50

ChatName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""`main` is the owner's main conversation."""
Cursor = Annotated[str, Meta(max_length=40, pattern=r"^$|^[0-9]{1,18}\.[0-9]{1,18}$")]
Id = Annotated[str, Meta(min_length=1, max_length=64)]


class Connect(Struct, frozen=True, tag_field="type", tag="connect", forbid_unknown_fields=True):
    """The first frame. `chats` by name: the cursor of the last message that the client has, empty = only new ones."""

    token: str
    protocol: int = VERSION
    chats: dict[ChatName, Cursor] = {}
    client: Annotated[str, Meta(max_length=100)] = ""


class Send(Struct, frozen=True, tag_field="method", tag="send", forbid_unknown_fields=True):
    """Say something in a chat. `key` names the message for good: sent again, it is the same one."""

    chat: ChatName
    text: Annotated[str, Meta(min_length=1, max_length=400_000)]
    key: Id


class Follow(Struct, frozen=True, tag_field="method", tag="follow", forbid_unknown_fields=True):
    """Be told of one more chat, from a cursor on."""

    chat: ChatName
    cursor: Cursor = ""


class History(Struct, frozen=True, tag_field="method", tag="history", forbid_unknown_fields=True):
    """The newest messages of a chat, oldest first."""

    chat: ChatName
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class Status(Struct, frozen=True, tag_field="method", tag="status", forbid_unknown_fields=True):
    """How the gateway is."""


Call = Send | Follow | History | Status


class Request(Struct, frozen=True, tag_field="type", tag="request", forbid_unknown_fields=True):
    id: Id
    call: Call


ClientFrame = Connect | Request


class Hello(Struct, frozen=True, tag_field="type", tag="hello"):
    """`ping` is seconds between two signs of life, after which a silent connection is dead."""

    protocol: int
    server: str
    ping: float
    max_frame: int = MAX_FRAME


class Button(Struct, frozen=True):
    """Pressing it is sending what it `says`."""

    label: str
    says: str


class FileLink(Struct, frozen=True):
    """A file to be fetched at `path`, with the token."""

    name: str
    mime: str
    size: int
    path: str


class Message(Struct, frozen=True, tag_field="kind", tag="message"):
    """A message of the agent, in Markdown, that stays. `at` is UTC ms."""

    text: str
    at: int
    is_notice: bool = False
    buttons: tuple[Button, ...] = ()
    files: tuple[FileLink, ...] = ()


class Live(Struct, frozen=True, tag_field="kind", tag="live"):
    """What goes on right now. `what` is `started`, `text` (more of the answer), `again` (what was shown of the answer
    does not count), `tool`, `progress`, `result`, `notice` or `ended`."""

    what: Literal["started", "text", "again", "tool", "progress", "result", "notice", "ended"]
    text: str = ""
    name: str = ""


class Event(Struct, frozen=True, tag_field="type", tag="event", omit_defaults=True):
    chat: str
    body: Message | Live
    cursor: str = ""


class Said(Struct, frozen=True):
    """One message of a history."""

    role: Literal["user", "assistant"]
    text: str
    at: int


class Sent(Struct, frozen=True, tag_field="result", tag="sent"):
    """It is stored. `is_new`: it was not before."""

    is_new: bool


class Following(Struct, frozen=True, tag_field="result", tag="following"):
    pass


class Told(Struct, frozen=True, tag_field="result", tag="history"):
    messages: tuple[Said, ...]


class Health(Struct, frozen=True, tag_field="result", tag="status"):
    is_ready: bool
    channels: dict[str, str]
    running: int


class Fault(Struct, frozen=True):
    """`code` is for programs: `unauthorised`, `invalid`, `too_large`, `unsupported`, `busy`, `failed`."""

    code: str
    message: str


class Response(Struct, frozen=True, tag_field="type", tag="response", omit_defaults=True):
    id: str
    result: Sent | Following | Told | Health | None = None
    error: Fault | None = None


class Refusal(Struct, frozen=True, tag_field="type", tag="error"):
    """The connection ends after this."""

    error: Fault


ServerFrame = Hello | Event | Response | Refusal

read = msgspec.json.Decoder(ClientFrame).decode
write = msgspec.json.Encoder().encode


class _Named(Struct, frozen=True):
    id: Id


_named = msgspec.json.Decoder(_Named).decode


def id_of(frame: bytes) -> str:
    """The id of a frame that is no request otherwise; empty where it has none."""
    try:
        return _named(frame).id
    except (msgspec.MsgspecError, RecursionError):
        return ""


def schema() -> bytes:
    """JSON Schema of all frames."""
    (client, server), parts = msgspec.json.schema_components((ClientFrame, ServerFrame), ref_template="#/$defs/{name}")
    found = {"title": "Limpet WebSocket protocol", "version": VERSION, "client": client, "server": server}
    return msgspec.json.format(write({**found, "$defs": parts}), indent=2)
