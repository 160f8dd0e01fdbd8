"""Stanzas to arrivals."""

# The library has types, but not for everything.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
from __future__ import annotations

import os
from datetime import datetime

from slixmpp.jid import JID
from slixmpp.stanza import Message

from limpet.channels.names import addressed, means_all
from limpet.channels.xmpp.client import Stream
from limpet.channels.xmpp.rooms import Rooms
from limpet.types.channel import Arrival
from limpet.types.envelope import Address

_ENCRYPTED = (
    "{eu.siacs.conversations.axolotl}encrypted",
    "{urn:xmpp:omemo:2}encrypted",
    "{urn:xmpp:openpgp:0}openpgp",
    "{jabber:x:encrypted}x",
)
_UNREADABLE = "[a message that is encrypted for somebody else's devices: it cannot be read here]"


def arrival(message: Message, stream: Stream, rooms: Rooms, *, account: str) -> Arrival | None:
    """What a message says to us; None: nothing, or it is our own, or is history from before our time."""
    grouped = message["type"] == "groupchat"
    sender = message["from"]
    room = str(sender.bare)
    ours = str(stream.plugin["xep_0045"].our_nicks[None].get(JID(room), "")) if grouped else ""
    text = _text(message)
    if not text or sender.bare == stream.boundjid.bare or message.get_plugin("retract", check=True) is not None:
        return None
    if grouped and (not sender.resource or sender.resource == ours):
        return None
    if not grouped and room in stream.plugin["xep_0045"].rooms[None]:
        return None  # whispered in a room by somebody of whom we know only what he calls himself
    delayed = _delayed(message)
    if grouped and delayed and not rooms.wants(room, delayed):
        return None
    text, named = addressed(text, ours) if grouped else (text, False)
    replaced = message.get_plugin("replace", check=True)
    return Arrival(
        Address("xmpp", account, room),
        _event(message),
        _occupant(message, stream, delayed=bool(delayed)) if grouped else str(sender.bare),
        text,
        message=f"{message['from']}#{message['id']}",
        sender_name=str(sender.resource if grouped else sender.local),
        chat_name=room if grouped else "",
        in_group=grouped,
        mentioned=named,
        to_all=means_all(text),
        # Nobody can name another one's message here.
        replaces=f"{message['from']}#{replaced['id']}" if replaced is not None else "",
        sent=delayed,
    )


def _text(message: Message) -> str:
    if any(message.xml.find(one) is not None for one in _ENCRYPTED):
        return _UNREADABLE
    return str(message["body"]).strip()


def _event(message: Message) -> str:
    """The sender's id of the message within his connection or room nick, which is the same in each copy of it; else
    the id that a server gave it, else one that is made."""
    if message["id"]:
        return f"{message['from']}#{message['id']}"
    given = message.get_plugin("stanza_id", check=True)
    return f"{given['by']}#{given['id']}" if given is not None else f"made-{os.urandom(12).hex()}"


def _occupant(message: Message, stream: Stream, *, delayed: bool) -> str:
    """Who speaks in a room: his real address where the room shows it (not in history: the nick may be another's by
    now), else the id that the room gives him (XEP-0421), else only his nick."""
    sender = message["from"]
    if not delayed:
        shown = stream.plugin["xep_0045"].get_jid_property(sender.bare, sender.resource, "jid")
        if shown:
            return str(shown.bare)
    given = message.xml.find("{urn:xmpp:occupant-id:0}occupant-id")
    return f"{sender.bare}#{given.get('id')}" if given is not None else str(sender)


def _delayed(message: Message) -> int:
    """When a message was said that was kept for us; UTC milliseconds, 0: just now."""
    delay = message.get_plugin("delay", check=True)
    stamp = delay["stamp"] if delay is not None else None
    return int(stamp.timestamp() * 1000) if isinstance(stamp, datetime) else 0
