"""What stands in the chats of the fake Telegram, and how the Bot API would tell it."""

from __future__ import annotations

import time
from typing import Literal

import msgspec
from msgspec import Struct

from limpet.testing.fakes.shape import Refused
from limpet.testing.fakes.telegram.html import Span

Json = dict[str, object]
ME = 7_000_000_001
"""The bot's own id."""


class Fault(Struct, frozen=True):
    """What the next `times` calls of a method meet.

    `answer` a refusal with `status` and `about` (`retry_after` for 429, 0 = none), nothing is done; `reset` the
    connection breaks and nothing is done; `lose` it is done, then the connection breaks; `hang` no answer for
    `seconds`; `page` a gateway's page of HTML with `status`.
    """

    kind: Literal["answer", "reset", "lose", "hang", "page"]
    times: int = 1
    status: int = 500
    about: str = "Internal Server Error"
    retry_after: int = 0
    seconds: float = 70.0


class Way(Struct, frozen=True):
    """How somebody says something. `thread` is its `message_thread_id`; `topic`: it is that of a forum's topic.

    `file` is the name and bytes of a `kind`, `person`: who is named by a `text_mention` of the first word.
    """

    thread: int = 0
    topic: bool = False
    reply_to: int = 0
    quote: str = ""
    album: str = ""
    file: tuple[str, bytes] | None = None
    kind: Literal["document", "photo", "voice"] = "document"
    person: int = 0
    as_chat: bool = False


class Posted(Struct, kw_only=True):
    """A message as it stands there. `markup` is what was sent for `text`; `files` are names and bytes."""

    id: int
    chat: int
    sender: int
    text: str
    markup: str = ""
    spans: tuple[Span, ...] = ()
    thread: int = 0
    topic: bool = False
    reply_to: int = 0
    quote: str = ""
    album: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    kind: str = ""
    keyboard: tuple[tuple[str, str], ...] = ()
    reaction: str = ""
    quiet: bool = False
    preview: bool = True
    edits: int = 0
    person: int = 0
    as_chat: bool = False
    date: int = 0


class Room(Struct, kw_only=True):
    """A chat. `topics` are those of a forum, `moved` its id as a supergroup, `blocked`: the bot may not write."""

    id: int
    type: Literal["private", "group", "supergroup"]
    title: str = ""
    forum: bool = False
    topics: set[int] = msgspec.field(default_factory=set[int])
    posts: dict[int, Posted] = msgspec.field(default_factory=dict[int, Posted])
    last: int = 0
    moved: int = 0
    blocked: bool = False
    typed: list[int] = msgspec.field(default_factory=list[int])
    """The threads in which the bot was seen typing."""

    def next_id(self) -> int:
        self.last += 1
        return self.last

    def post(self, number: int, *, about: str = "message not found") -> Posted:
        if number not in self.posts:
            raise Refused(f"Bad Request: {about}")
        return self.posts[number]


class Chats:
    """All rooms and people, and the files that were put there (by `file_id`)."""

    def __init__(self, username: str) -> None:
        self.username = username
        self.rooms: dict[int, Room] = {}
        self.people: dict[int, str] = {}
        self.stored: dict[str, bytes] = {}

    def room(self, chat: object) -> Room:
        """Raises `Refused` as the Bot API does when the bot cannot write there."""
        room = self.rooms.get(chat) if isinstance(chat, int) else None
        if room is None:
            raise Refused("Bad Request: chat not found")
        if room.moved:
            raise Refused("Bad Request: group chat was upgraded to a supergroup chat", code=str(room.moved))
        if room.blocked:
            raise Refused("Forbidden: bot was blocked by the user", status=403)
        return room

    def me(self) -> Json:
        return {"id": ME, "is_bot": True, "first_name": "Helper", "username": self.username}

    def user(self, id: int) -> Json:
        return self.me() if id == ME else {"id": id, "is_bot": False, "first_name": self.people[id]}

    def chat(self, room: Room) -> Json:
        found: Json = {"id": room.id, "type": room.type}
        found |= {"first_name": self.people.get(room.id, "")} if room.type == "private" else {"title": room.title}
        return found | ({"is_forum": True} if room.forum else {})

    def message(self, post: Posted, *, nested: bool = False) -> Json:
        """A message as the Bot API tells it; answered ones are told within it, one deep."""
        room = self.rooms[post.chat]
        found: Json = {"message_id": post.id, "chat": self.chat(room), "date": post.date or int(time.time())}
        found["from"] = self.user(post.sender)
        if post.as_chat:
            found |= {"sender_chat": self.chat(room), "from": {**self.user(post.sender), "is_bot": True}}
        if post.thread:
            found["message_thread_id"] = post.thread
        if post.topic:
            found["is_topic_message"] = True
        if post.album:
            found["media_group_id"] = post.album
        if post.edits:
            found["edit_date"] = int(time.time())
        found |= self._content(post)
        return found if nested else found | self._answered(post, room)

    def _content(self, post: Posted) -> Json:
        entities: list[Json] = [msgspec.structs.asdict(span) for span in post.spans]
        if post.person:
            length = len(post.text.partition(" ")[0])
            entities.append({"type": "text_mention", "offset": 0, "length": length, "user": self.user(post.person)})
        text, marks = ("caption", "caption_entities") if post.files else ("text", "entities")
        found: Json = {text: post.text} if post.text else {}
        if entities and post.text:
            found[marks] = entities
        return found | (self._media(post) if post.files else {})

    def _media(self, post: Posted) -> Json:
        name, data = post.files[0]
        file_id = f"file-{post.chat}-{post.id}"
        self.stored[file_id] = data
        one: Json = {"file_id": file_id, "file_unique_id": file_id, "file_size": len(data)}
        if post.kind == "photo":
            small: Json = {**one, "file_id": file_id + "-s", "width": 90, "height": 90}
            return {"photo": [small, {**one, "width": 1280, "height": 1280}]}
        if post.kind == "voice":
            return {"voice": {**one, "duration": 1, "mime_type": "audio/ogg"}}
        return {"document": {**one, "file_name": name, "mime_type": "text/plain"}}

    def _answered(self, post: Posted, room: Room) -> Json:
        found: Json = {"quote": {"text": post.quote, "position": 0}} if post.quote else {}
        if post.reply_to in room.posts:
            return found | {"reply_to_message": self.message(room.posts[post.reply_to], nested=True)}
        if post.topic:  # then it "answers" the notice that the topic was opened, which may be the bot's
            opened: Json = {"message_id": post.thread, "chat": self.chat(room), "date": 1, "from": self.me()}
            opened["forum_topic_created"] = {"name": "topic", "icon_color": 7322096}
            return found | {"reply_to_message": opened}
        return found
