"""What Slack says, as far as we read it; fields by its names (https://docs.slack.dev/reference)."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Answer(Struct, frozen=True):
    """The envelope of every answer of the Web API. `needed` is a scope that is missing."""

    ok: bool = False
    error: str = ""
    needed: str = ""


class Nothing(Struct, frozen=True):
    """An answer of which only the envelope counts."""


class Me(Struct, frozen=True):
    """`auth.test`."""

    user_id: str
    team_id: str = ""


class Opened(Struct, frozen=True):
    """`apps.connections.open`."""

    url: str


class Posted(Struct, frozen=True):
    ts: str


class Slot(Struct, frozen=True):
    """`files.getUploadURLExternal`."""

    upload_url: str
    file_id: str


class Profile(Struct, frozen=True):
    display_name: str = ""
    real_name: str = ""


class User(Struct, frozen=True):
    id: str
    name: str = ""
    profile: Profile = Profile()


class Chat(Struct, frozen=True):
    id: str
    name: str | None = None


class UserAnswer(Struct, frozen=True):
    user: User


class ChatAnswer(Struct, frozen=True):
    channel: Chat


class Paging(Struct, frozen=True):
    next_cursor: str = ""


class ChatsAnswer(Struct, frozen=True):
    channels: tuple[Chat, ...] = ()
    response_metadata: Paging | None = None


class Reaction(Struct, frozen=True):
    name: str
    users: tuple[str, ...] = ()


class Edited(Struct, frozen=True):
    ts: str


class Attached(Struct, frozen=True):
    """A file of a message; `subtype` is `slack_audio` for what was spoken for the chat."""

    name: str | None = None
    mimetype: str | None = None
    size: int = 0
    url_private: str = ""
    subtype: str | None = None


class Message(Struct, frozen=True, kw_only=True):
    """A message, or the event that tells of one (then with its channel). `message` is what a changed one says now."""

    type: str = "message"
    subtype: str | None = None
    channel: str = ""
    user: str | None = None
    bot_id: str | None = None
    text: str = ""
    ts: str = ""
    thread_ts: str = ""
    parent_user_id: str = ""
    edited: Edited | None = None
    files: tuple[Attached, ...] = ()
    reactions: tuple[Reaction, ...] = ()
    message: Message | None = None


class MessageAnswer(Struct, frozen=True):
    message: Message


class History(Struct, frozen=True):
    messages: tuple[Message, ...] = ()
    response_metadata: Paging | None = None


class Event(Struct, frozen=True):
    """The payload of `events_api`."""

    event: msgspec.Raw
    team_id: str = ""


class Kind(Struct, frozen=True):
    """The type of an event, before the rest of it is read."""

    type: str


class Action(Struct, frozen=True):
    action_ts: str = ""
    value: str = ""


class Presser(Struct, frozen=True):
    id: str
    name: str = ""


class Interactive(Struct, frozen=True):
    """The payload of `interactive`; that of a button is of the type `block_actions`."""

    type: str
    user: Presser
    channel: Chat | None = None
    team: Chat | None = None
    message: Message | None = None
    actions: tuple[Action, ...] = ()


class Slash(Struct, frozen=True):
    """The payload of `slash_commands`. `trigger_id` names the one use."""

    command: str
    user_id: str
    channel_id: str
    trigger_id: str
    text: str = ""
    user_name: str = ""
    channel_name: str = ""
    team_id: str = ""


class Envelope(Struct, frozen=True):
    """One message of the socket; `reason` is that of a `disconnect`."""

    type: str
    envelope_id: str = ""
    payload: msgspec.Raw = msgspec.Raw(b"null")
    reason: str = ""
