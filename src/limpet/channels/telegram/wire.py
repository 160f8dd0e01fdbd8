"""What the Bot API says, as far as we read it; fields by its names (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class User(Struct, frozen=True):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class Chat(Struct, frozen=True):
    id: int
    type: str = "private"
    title: str = ""
    username: str = ""
    first_name: str = ""
    is_forum: bool = False


class Entity(Struct, frozen=True):
    """`offset` and `length` count UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None


class Media(Struct, frozen=True):
    """A photo size, document, voice, audio, video, animation, video note or sticker."""

    file_id: str
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""
    width: int = 0
    emoji: str = ""


class Place(Struct, frozen=True):
    latitude: float
    longitude: float


class Contact(Struct, frozen=True):
    phone_number: str
    first_name: str = ""
    last_name: str = ""


class Quote(Struct, frozen=True):
    text: str = ""


class TopicOpened(Struct, frozen=True):
    """The notice that a topic was opened."""

    name: str = ""


class Message(Struct, frozen=True, kw_only=True):
    message_id: int
    chat: Chat
    date: int = 0
    edit_date: int = 0
    sender: User | None = msgspec.field(name="from", default=None)
    sender_chat: Chat | None = None
    message_thread_id: int = 0
    is_topic_message: bool = False
    text: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    quote: Quote | None = None
    media_group_id: str = ""
    photo: tuple[Media, ...] = ()
    document: Media | None = None
    voice: Media | None = None
    audio: Media | None = None
    video: Media | None = None
    video_note: Media | None = None
    animation: Media | None = None
    sticker: Media | None = None
    location: Place | None = None
    contact: Contact | None = None
    migrate_to_chat_id: int = 0
    migrate_from_chat_id: int = 0
    forum_topic_created: TopicOpened | None = None


class Pressed(Struct, frozen=True, kw_only=True):
    """A button under one of our messages was pressed."""

    id: str
    sender: User = msgspec.field(name="from")
    message: Message | None = None
    data: str = ""


class Update(Struct, frozen=True):
    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Pressed | None = None


class Number(Struct, frozen=True):
    """An update of which only the number is read."""

    update_id: int


class Sent(Struct, frozen=True):
    message_id: int


class Stored(Struct, frozen=True):
    """What `getFile` says."""

    file_path: str = ""
    file_size: int = 0


class Parameters(Struct, frozen=True):
    retry_after: float = 0.0
    migrate_to_chat_id: int = 0


class Answer(Struct, frozen=True):
    """The envelope of every answer."""

    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Parameters = Parameters()
