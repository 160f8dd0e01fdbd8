"""Events to arrivals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from limpet.channels.matrix.client import Homeserver
from limpet.channels.matrix.wire import Content, Happened, happened
from limpet.channels.names import addressed, means_all
from limpet.types.channel import Arrival, File
from limpet.types.envelope import Address

_FALLBACK = re.compile(r"\A(?:> .*\n)+\n")
"""How replies were quoted in the text until 2024."""
_FILES = ("m.image", "m.file", "m.audio", "m.video")
_UNREADABLE = "[an encrypted message that cannot be read here]"


def since_we_came(events: Iterable[object], user: str) -> list[Happened]:
    """The events of a timeline from our invitation on, if we have come within it; else all. What cannot be read is
    left out."""
    found = [one for one in (happened(getattr(event, "source", None)) for event in events) if one is not None]
    ours = [(at, one) for at, one in enumerate(found) if one.type == "m.room.member" and one.state_key == user]
    came = [at for at, one in ours if one.content.membership == "join" and _before(one) != "join"]
    if not came:
        return found
    invited = [at for at, one in ours if one.content.membership == "invite" and at < came[-1]]
    return found[(invited or came)[-1] + 1 :]


def _before(event: Happened) -> str:
    return event.unsigned.prev_content.membership


async def arrival(event: Happened, room: str, server: Homeserver, *, account: str) -> Arrival | None:
    """What an event says to us; None: nothing, or it is our own, or a bot's notice. Raises `ChannelError`."""
    sealed = event.type == "m.room.encrypted"
    if event.sender == server.user or event.state_key is not None or not (sealed or event.type == "m.room.message"):
        return None
    relates = event.content.relates
    replaces = relates.event_id if relates.rel_type == "m.replace" else ""
    content = event.content
    if replaces:
        original = await server.event(room, replaces)
        if original is None or original.sender != event.sender or content.new is None:
            return None  # nobody changes the words of another
        content, relates = content.new, original.content.relates
    text = _UNREADABLE if sealed else _text(content, event.sender)
    files = () if sealed else _files(content, server)
    if content.msgtype == "m.notice" or not (text or files):
        return None
    known = server.nio.rooms.get(room)
    grouped = known is None or known.member_count > 2
    answers = "" if relates.falls_back else relates.answers.event_id
    answered = await server.event(room, answers) if answers else None
    names = (server.user, server.user.partition(":")[0], str(known.user_name(server.user) or "") if known else "")
    text, named = addressed(text, *(name.lstrip("@") for name in names))
    meant = named or server.user in content.mentions.user_ids
    meant = meant or (answered is not None and answered.sender == server.user)
    thread = relates.event_id if relates.rel_type == "m.thread" else ""
    return Arrival(
        Address("matrix", account, room, thread),
        event.event_id,
        event.sender,
        text,
        message=replaces or event.event_id,
        sender_name=str((known.user_name(event.sender) if known else "") or event.sender),
        chat_name=str(known.display_name) if known and grouped else "",
        in_group=grouped,
        mentioned=grouped and meant,
        to_all=content.mentions.room or means_all(text),
        replaces=replaces,
        quoted=_text(answered.content, answered.sender) if answered is not None else "",
        parent=room if thread else "",
        files=files,
        sent=event.origin_server_ts,
        reply_to=answers,
    )


def _text(content: Content, sender: str) -> str:
    if content.msgtype in _FILES and content.filename in ("", content.body):
        return ""  # the body is only the file's name
    text = content.body
    if content.relates.answers.event_id:
        text = _FALLBACK.sub("", text)
    return f"* {sender} {text}" if content.msgtype == "m.emote" else text


def _files(content: Content, server: Homeserver) -> tuple[File, ...]:
    at = content.file.url if content.file is not None else content.url
    if content.msgtype not in _FILES or not at.startswith("mxc://"):
        return ()

    async def fetch(limit: int) -> bytes:
        return await server.download(at, limit, sealed=content.file)

    name = content.filename or content.body or "file"
    voice = content.voice is not None
    return (File(name, content.info.mimetype, fetch, size=content.info.size, voice=voice),)
