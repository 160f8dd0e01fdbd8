"""What stands in the conversations of the fake Slack, and how it would tell it."""

from __future__ import annotations

import itertools
from typing import Literal

import msgspec
from msgspec import Struct

from limpet.testing.fakes.shape import Refused

Json = dict[str, object]
ME, BOT, TEAM = "UBOT", "B1", "T1"
_START = 1_790_000_000


class Fault(Struct, frozen=True):
    """What the next `times` calls of a method meet.

    `answer` a refusal by `error` with `status` (429 with `retry_after`), nothing is done; `reset` the connection breaks
    and nothing is done; `lose` it is done, then the connection breaks; `page` a page of HTML with `status`.
    """

    kind: Literal["answer", "reset", "lose", "page"]
    times: int = 1
    status: int = 200
    error: str = ""
    retry_after: int = 0


class Way(Struct, frozen=True):
    """How somebody says something."""

    thread: str = ""
    file: tuple[str, bytes] | None = None
    voice: bool = False
    subtype: str = ""
    bot: bool = False


class Posted(Struct, kw_only=True):
    """A message as it stands there. `buttons` are labels with what they say."""

    ts: str
    room: str
    user: str
    text: str
    thread: str = ""
    way: Way = Way()
    files: tuple[tuple[str, bytes], ...] = ()
    buttons: tuple[tuple[str, str], ...] = ()
    sections: tuple[str, ...] = ()
    reactions: tuple[tuple[str, str], ...] = ()
    edited: str = ""


class Room(Struct, kw_only=True):
    """A conversation; those between two begin with D. `joined`: the bot is in it."""

    id: str
    name: str = ""
    joined: bool = True
    archived: bool = False
    posts: dict[str, Posted] = msgspec.field(default_factory=dict[str, Posted])

    def post(self, ts: object) -> Posted:
        if not isinstance(ts, str) or ts not in self.posts:
            raise Refused("message_not_found")
        return self.posts[ts]


class Rooms:
    """All conversations and people."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.people: dict[str, str] = {ME: "helper", "U1": "ann", "U2": "bob"}
        self.files = ""
        self.stored: dict[str, bytes] = {}
        self._count = itertools.count(1)

    def next_ts(self) -> str:
        number = next(self._count)
        return f"{_START + number}.{number:06}"

    def room(self, id: object, *, write: bool = False) -> Room:
        """Raises `Refused` as Slack does when the bot cannot see it, or not write there."""
        room = self.rooms.get(id) if isinstance(id, str) else None
        if room is None:
            raise Refused("channel_not_found")
        if write and room.archived:
            raise Refused("is_archived")
        if not room.joined:
            raise Refused("not_in_channel")
        return room

    def message(self, post: Posted) -> Json:
        """A message without its channel, as histories tell it."""
        found: Json = {"type": "message", "user": post.user, "text": post.text, "ts": post.ts, "team": TEAM}
        if post.user == ME or post.way.bot:
            found["bot_id"] = BOT
        if post.way.subtype or post.files:
            found["subtype"] = post.way.subtype or "file_share"
        if post.thread:
            root = self.rooms[post.room].posts.get(post.thread)
            found |= {"thread_ts": post.thread, "parent_user_id": root.user if root is not None else ""}
        elif any(other.thread == post.ts for other in self.rooms[post.room].posts.values()):
            found["thread_ts"] = post.ts
        if post.edited:
            found["edited"] = {"user": post.user, "ts": post.edited}
        if post.files:
            found["files"] = [self._file(post, name, data) for name, data in post.files]
        if post.reactions:
            names = dict.fromkeys(name for _, name in post.reactions)
            reactions: list[Json] = []
            for name in names:
                users = [who for who, one in post.reactions if one == name]
                reactions.append({"name": name, "users": users, "count": len(users)})
            found["reactions"] = reactions
        return found

    def event(self, post: Posted) -> Json:
        """What `message` events say: the message, where it stands and what kind of place that is."""
        kind = "im" if post.room.startswith("D") else "channel"
        return self.message(post) | {"channel": post.room, "channel_type": kind, "event_ts": post.ts}

    def _file(self, post: Posted, name: str, data: bytes) -> Json:
        key = f"{post.ts}/{name}"
        self.stored[key] = data
        found: Json = {"id": f"F{post.ts}", "name": name, "size": len(data), "url_private": f"{self.files}/{key}"}
        return found | (
            {"mimetype": "audio/webm", "subtype": "slack_audio"} if post.way.voice else {"mimetype": "text/plain"}
        )
