"""Messages and interactions to arrivals: who said what where, and whether the bot is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from limpet.channels.discord.api import Api
from limpet.channels.discord.wire import Interaction, Member, Message, Place, User
from limpet.types.channel import Arrival
from limpet.types.envelope import Address

_SAID = (0, 19)
"""Types of messages that somebody wrote; the others tell of joining, pinning and the like."""
_FORWARDED = 1
_COMMAND, _BUTTON = 2, 3
_EPOCH = 1_420_070_400_000


def sent(id: str) -> int:
    """When a thing was made, by its id (UTC ms)."""
    return (int(id) >> 22) + _EPOCH


def first_id(moment: int) -> str:
    """The smallest id of what is made at `moment` (UTC ms)."""
    return str(max(0, moment - _EPOCH) << 22)


@dataclass(slots=True)
class Reader:
    """Reads for the bot `me`. `roles` are those that Discord made for the bot alone: who calls one, means it."""

    account: str
    api: Api
    me: str = ""
    roles: set[str] = field(default_factory=set[str])

    async def message(self, message: Message) -> Arrival | None:
        """What a message says to us; None: nothing, or a bot said it. Raises `ChannelError`.

        Its event is its id; that of a changed one its id and the time of the change.
        """
        author = message.author
        if author is None or author.bot or message.webhook_id or author.id == self.me or message.type not in _SAID:
            return None
        text, attached = message.content, message.attachments
        answers = message.message_reference
        if answers is not None and answers.type == _FORWARDED:
            text = "\n\n".join([text, *(one.message.content for one in message.message_snapshots)]).strip()
            attached += tuple(file for one in message.message_snapshots for file in one.message.attachments)
            answers = None
        if not text and not attached:
            return None
        place = await self.api.place(message.channel_id)
        guild = message.guild_id or place.guild_id or ""
        member = message.member or (await self.api.member(guild, author.id) if guild else None)
        answered = message.referenced_message if answers is not None else None
        replied = answered is not None and answered.author is not None and answered.author.id == self.me
        named = any(user.id == self.me for user in message.mentions) or not self.roles.isdisjoint(message.mention_roles)
        changed = message.edited_timestamp
        return Arrival(
            self._address(place),
            f"{message.id}:{changed}" if changed else message.id,
            author.id,
            self._unnamed(text) if guild else text,
            message=message.id,
            sender_name=_name(author, member),
            chat_name=place.name or "",
            in_group=bool(guild),
            mentioned=bool(guild) and (named or replied),
            to_all=message.mention_everyone,
            replaces=message.id if changed else "",
            quoted=answered.content if answered is not None else "",
            space=guild,
            parent=(place.parent_id or "") if place.threaded else "",
            roles=member.roles if member is not None else (),
            files=tuple(map(self.api.file, attached)),
            sent=round(datetime.fromisoformat(changed).timestamp() * 1000) if changed else sent(message.id),
            reply_to=(answers.message_id or "") if answers is not None else "",
        )

    async def interaction(self, one: Interaction) -> Arrival | None:
        """A pressed button, or a slash command as the text it stands for; its event is the interaction's id."""
        user = one.user or (one.member.user if one.member is not None else None)
        if user is None:
            return None
        if one.type == _COMMAND:
            text = " ".join([f"/{one.data.name}", *(str(option.value) for option in one.data.options)])
        elif one.type == _BUTTON:
            text = one.data.custom_id
        else:
            return None
        place = await self.api.place(one.channel_id)
        message = one.message.id if one.message is not None else ""
        return Arrival(
            self._address(place),
            one.id,
            user.id,
            text,
            message=message,
            sender_name=_name(user, one.member),
            chat_name=place.name or "",
            in_group=one.member is not None,
            mentioned=one.member is not None,
            pressed=one.type == _BUTTON,
            space=place.guild_id or "",
            parent=(place.parent_id or "") if place.threaded else "",
            roles=one.member.roles if one.member is not None else (),
            sent=sent(one.id),
            reply_to=message,
        )

    def _address(self, place: Place) -> Address:
        if place.threaded and place.parent_id:
            return Address("discord", self.account, place.parent_id, place.id)
        return Address("discord", self.account, place.id)

    def _unnamed(self, text: str) -> str:
        """The text without the bot's name at its beginning."""
        ours = "|".join([f"<@!?{self.me}>", *(f"<@&{role}>" for role in sorted(self.roles))])
        return re.sub(rf"\A\s*(?:{ours})[\s,:]*(?=\S)", "", text)


def _name(user: User, member: Member | None) -> str:
    return (member.nick if member is not None else None) or user.global_name or user.username
