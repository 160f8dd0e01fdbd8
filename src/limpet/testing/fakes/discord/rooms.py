"""What stands in the channels of the fake Discord, and how it would tell it."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Literal

import msgspec
from msgspec import Struct

from limpet.testing.fakes.shape import Refused

Json = dict[str, object]
ME, APP, ROLE = "1000", "1001", "1002"
"""The bot, its application, and the role that Discord made for it in each guild."""
_EPOCH = 1_420_070_400_000
_START = 1_790_000_000_000


class Fault(Struct, frozen=True):
    """What the next `times` calls of a route meet.

    `answer` a refusal with `status`, `code` and `about` (`retry_after` for 429), nothing is done; `reset` the
    connection breaks and nothing is done; `lose` it is done, then the connection breaks; `page` a page of HTML.
    """

    kind: Literal["answer", "reset", "lose", "page"]
    times: int = 1
    status: int = 500
    code: int = 0
    about: str = "Internal Server Error"
    retry_after: float = 0.0
    everywhere: bool = False


class Way(Struct, frozen=True):
    """How somebody says something. `roles` are called, `forwarded` is what a forwarded message said."""

    reply_to: str = ""
    file: tuple[str, bytes] | None = None
    voice: bool = False
    mentions: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    everyone: bool = False
    forwarded: str = ""
    webhook: bool = False
    type: int = 0


class Posted(Struct, kw_only=True):
    """A message as it stands there."""

    id: str
    place: str
    author: str
    text: str
    way: Way = Way()
    reply_to: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    reactions: tuple[tuple[str, str], ...] = ()
    nonce: str = ""
    flags: int = 0
    edited: str = ""


class Room(Struct, kw_only=True):
    """A channel (type 0), a talk (1), or a thread (11). `closed`: the bot may not see it."""

    id: str
    type: int = 0
    guild: str = ""
    name: str = ""
    parent: str = ""
    closed: bool = False
    last: str = ""
    posts: dict[str, Posted] = msgspec.field(default_factory=dict[str, Posted])
    typed: int = 0

    def post(self, id: str) -> Posted:
        if id not in self.posts:
            raise Refused("Unknown Message", status=404, code="10008")
        return self.posts[id]


class Rooms:
    """All rooms and people (id to name); `roles` are those of people in the guild."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.people: dict[str, str] = {ME: "helper"}
        self.roles: dict[str, tuple[str, ...]] = {}
        self.cdn = ""
        self.stored: dict[str, bytes] = {}
        self._count = itertools.count(1)

    def next_id(self) -> str:
        """Ids are times, as the real ones."""
        return str((_START - _EPOCH + next(self._count)) << 22)

    def room(self, id: str) -> Room:
        """Raises `Refused` as Discord does when the bot cannot see it."""
        if id not in self.rooms:
            raise Refused("Unknown Channel", status=404, code="10003")
        if self.rooms[id].closed:
            raise Refused("Missing Access", status=403, code="50001")
        return self.rooms[id]

    def user(self, id: str) -> Json:
        return {"id": id, "username": self.people[id], "global_name": self.people[id].title(), "bot": id == ME}

    def place(self, room: Room) -> Json:
        found: Json = {"id": room.id, "type": room.type, "last_message_id": room.last or None}
        if room.type == 1:
            return found
        return found | {"guild_id": room.guild, "name": room.name, "parent_id": room.parent or None}

    def member(self, id: str) -> Json:
        return {"roles": list(self.roles.get(id, ())), "nick": None, "joined_at": _now(), "flags": 0}

    def message(self, post: Posted, *, live: bool, nested: bool = False) -> Json:
        """A message; only events (`live`) have guild and member, and answered ones are told one deep."""
        room, way = self.rooms[post.place], post.way
        found: Json = {"id": post.id, "channel_id": room.id, "author": self.user(post.author), "content": post.text}
        found |= {"timestamp": _now(), "edited_timestamp": post.edited or None, "type": 19 if post.reply_to else 0}
        found |= {"mentions": [self.user(id) for id in way.mentions], "mention_roles": list(way.roles)}
        found |= {"mention_everyone": way.everyone, "flags": post.flags, "tts": False, "pinned": False, "embeds": []}
        found["attachments"] = [self._attached(post, name, data) for name, data in post.files]
        if way.type:
            found["type"] = way.type
        if way.webhook:
            found["webhook_id"] = "77"
        if post.reactions:
            found["reactions"] = self._reactions(post)
        if way.forwarded:
            found["message_reference"] = {"type": 1, "message_id": "1", "channel_id": "1"}
            found["message_snapshots"] = [{"message": {"content": way.forwarded, "attachments": []}}]
        if live and room.guild:
            found |= {"guild_id": room.guild, "member": self.member(post.author)}
        if post.reply_to and not nested:
            found["message_reference"] = {"type": 0, "message_id": post.reply_to, "channel_id": room.id}
            answered = room.posts.get(post.reply_to)
            found["referenced_message"] = answered and self.message(answered, live=False, nested=True)
        return found

    def _reactions(self, post: Posted) -> list[Json]:
        names = dict.fromkeys(name for _, name in post.reactions)
        return [{"emoji": {"id": None, "name": name}, "me": (ME, name) in post.reactions, "count": 1} for name in names]

    def _attached(self, post: Posted, name: str, data: bytes) -> Json:
        key = f"{post.id}/{name}"
        self.stored[key] = data
        found: Json = {"id": post.id, "filename": name, "size": len(data), "url": f"{self.cdn}/{key}"}
        voice: Json = {"waveform": "AAA=", "duration_secs": 1.0} if post.way.voice else {}
        return found | {"content_type": "audio/ogg" if post.way.voice else "text/plain; charset=utf-8"} | voice


def _now() -> str:
    return datetime.now(UTC).isoformat()
