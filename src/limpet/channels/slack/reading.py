"""Events, pressed buttons and slash commands to arrivals: who said what where, and whether the bot is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from limpet.channels.slack.api import Api
from limpet.channels.slack.wire import Interactive, Message, Slash
from limpet.types.channel import Arrival
from limpet.types.envelope import Address

_SAID = (None, "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that somebody wrote; the others tell of joining, topics, bots and the like."""
_MARK = re.compile(r"<([^<>\s|][^<>|]*)(?:\|([^<>]*))?>")
_TO_ALL = ("!channel", "!here", "!everyone")


@dataclass(slots=True)
class Reader:
    """Reads for the bot `me` in `team`. `commands` are the slash commands we know, without the slash."""

    account: str
    api: Api
    threads: bool
    me: str = ""
    team: str = ""
    commands: set[str] = field(default_factory=set[str])

    async def message(self, message: Message, team: str) -> Arrival | None:
        """What a message says to us; None: nothing, or a bot said it.

        Its event is its channel and `ts`, so that `message` and `app_mention` of one text are one; that of a changed
        one has the `ts` of the change too.
        """
        changed = message.message if message.subtype == "message_changed" else None
        said = changed or message
        if said.subtype not in _SAID or said.bot_id or not said.user or said.user == self.me:
            return None
        files = tuple(self.api.file(one) for one in said.files if one.url_private)
        if not (said.text or files) or (changed is not None and changed.edited is None):
            return None
        channel, group = message.channel, not _alone(message.channel)
        thread = said.thread_ts if said.thread_ts != said.ts else ""
        named = f"<@{self.me}>" in said.text
        text, to_all = words(re.sub(rf"\A\s*<@{self.me}>[\s,:]*(?=\S)", "", said.text))
        mentioned = group and (named or bool(thread and said.parent_user_id == self.me))
        event = f"{channel}:{said.ts}"
        return Arrival(
            self._address(channel, thread or (said.ts if self.threads and mentioned else "")),
            f"{event}:{said.edited.ts}" if changed is not None and said.edited is not None else event,
            said.user,
            text,
            message=said.ts,
            sender_name=await self.api.user_name(said.user),
            chat_name=await self.api.chat_name(channel) if group else "",
            in_group=group,
            mentioned=mentioned,
            to_all=to_all,
            replaces=said.ts if changed is not None else "",
            space=team or self.team,
            parent=channel if thread else "",
            files=files,
            sent=moment(said.edited.ts if changed is not None and said.edited is not None else said.ts),
            reply_to=thread,
        )

    def pressed(self, one: Interactive) -> Arrival | None:
        """A button says its value; its event is the message with the time and person of the press."""
        if one.type != "block_actions" or one.channel is None or one.message is None or not one.actions:
            return None
        channel, message, action = one.channel.id, one.message, one.actions[0]
        if not action.value:
            return None
        thread = message.thread_ts if message.thread_ts != message.ts else ""
        return Arrival(
            self._address(channel, thread),
            f"{channel}:{message.ts}:{action.action_ts}:{one.user.id}",
            one.user.id,
            action.value,
            message=message.ts,
            sender_name=one.user.name or one.user.id,
            chat_name=one.channel.name or "",
            in_group=not _alone(channel),
            mentioned=not _alone(channel),
            pressed=True,
            space=one.team.id if one.team is not None else self.team,
            parent=channel if thread else "",
            sent=moment(action.action_ts),
            reply_to=message.ts,
        )

    def command(self, one: Slash) -> Arrival:
        """A slash command as the text it stands for; `/limpet help` of a command that is only ours means `/help`.

        Its event is the `trigger_id`.
        """
        name, rest = one.command.removeprefix("/"), words(one.text)[0].strip()
        if name in self.commands:
            text = f"/{name} {rest}".rstrip()
        else:
            text = f"/{rest}" if rest.partition(" ")[0] in self.commands else rest
        group = not _alone(one.channel_id)
        return Arrival(
            self._address(one.channel_id, ""),
            f"command:{one.trigger_id}",
            one.user_id,
            text or "/help",
            sender_name=one.user_name or one.user_id,
            chat_name=one.channel_name if group else "",
            in_group=group,
            mentioned=group,
            space=one.team_id or self.team,
        )

    def _address(self, channel: str, thread: str) -> Address:
        return Address("slack", self.account, channel, thread)


def moment(ts: str) -> int:
    """A `ts` as UTC ms; 0 when it is none."""
    seconds, _, rest = ts.partition(".")
    return int(seconds) * 1000 + int((rest + "000")[:3] or 0) if seconds.isdecimal() and rest.isdecimal() else 0


def words(text: str) -> tuple[str, bool]:
    """What people read of a text, and whether it calls everybody. People stay as `<@ID>`."""
    to_all = False

    def shown(found: re.Match[str]) -> str:
        nonlocal to_all
        target, label = found[1], found[2] or ""
        if target.startswith("@"):
            return f"<{target}>"
        if target.split("^")[0] in _TO_ALL:
            to_all = True
            return f"@{target[1:]}"
        if target.startswith(("!", "#")):
            return ("#" + label if label else target) if target[0] == "#" else label or target[1:]
        address = target.removeprefix("mailto:")
        return f"{label} ({address})" if label and label not in (address, target) else address

    plain = _MARK.sub(shown, text)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), to_all


def _alone(channel: str) -> bool:
    """Whether it is a talk between two: ids of such begin with D."""
    return channel.startswith("D")
