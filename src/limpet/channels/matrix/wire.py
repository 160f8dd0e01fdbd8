"""What messages of Matrix hold, as far as we read it (https://spec.matrix.org/latest/client-server-api)."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field


class Named(Struct, frozen=True):
    event_id: str = ""


class Relation(Struct, frozen=True):
    """`falls_back`: what it answers is named only for programs that know no threads."""

    rel_type: str = ""
    event_id: str = ""
    answers: Named = field(name="m.in_reply_to", default=Named())
    falls_back: bool = field(name="is_falling_back", default=False)


class Mentions(Struct, frozen=True):
    user_ids: tuple[str, ...] = ()
    room: bool = False


class Info(Struct, frozen=True):
    mimetype: str = "application/octet-stream"
    size: int = 0


class Key(Struct, frozen=True):
    k: str = ""


class Encrypted(Struct, frozen=True):
    """A file that can be read with `key`, `iv` and `hashes`."""

    url: str
    key: Key = Key()
    iv: str = ""
    hashes: dict[str, str] = {}


class Content(Struct, frozen=True):
    msgtype: str = ""
    body: str = ""
    filename: str = ""
    url: str = ""
    file: Encrypted | None = None
    info: Info = Info()
    relates: Relation = field(name="m.relates_to", default=Relation())
    mentions: Mentions = field(name="m.mentions", default=Mentions())
    voice: dict[str, object] | None = field(name="org.matrix.msc3245.voice", default=None)
    membership: str = ""
    new: Content | None = field(name="m.new_content", default=None)


class Before(Struct, frozen=True):
    prev_content: Content = Content()


class Happened(Struct, frozen=True):
    """An event of a room's timeline."""

    type: str
    sender: str
    event_id: str = ""
    state_key: str | None = None
    content: Content = Content()
    origin_server_ts: int = 0
    unsigned: Before = Before()


def happened(source: object) -> Happened | None:
    """An event; None when it cannot be read."""
    try:
        return msgspec.convert(source, Happened)
    except msgspec.ValidationError:
        return None
