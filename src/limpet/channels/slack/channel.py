"""The channel `slack`: what a bot puts into conversations. What comes in is in `stream`.

Events are: channel and `ts` of a message, with the `ts` of the change when it was changed; message, time and person of
a pressed button; `trigger_id` of a slash command.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from limpet.channels.kinds import Means
from limpet.channels.rest import Rest
from limpet.channels.slack.api import TOKENS, Api, ApiError, Value
from limpet.channels.slack.reading import Reader
from limpet.channels.slack.stream import Sleep, Stream
from limpet.channels.slack.wire import MessageAnswer, Nothing, Posted
from limpet.config.channels import SlackSettings
from limpet.errors import ConfigError, RefusedError
from limpet.types.channel import Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address

LIMIT = 4_000
"""Characters that `chat.update` takes; `chat.postMessage` would take more."""
_SECTION = 3_000
_LARGEST = 100_000_000
"""Slack takes 1 GB; so much we hold in memory."""
_BUTTONS = 25
_TS = re.compile(r"\d+\.\d+")
_NAMES = {
    "👀": "eyes", "✅": "white_check_mark", "❌": "x", "👍": "+1", "👎": "-1", "❤": "heart", "🔥": "fire", "🎉": "tada",
    "🤔": "thinking_face", "🙏": "pray", "👏": "clap", "😁": "grin", "😂": "joy", "😢": "cry", "💯": "100", "⚡": "zap",
    "⏳": "hourglass_flowing_sand", "⚠": "warning", "🚀": "rocket", "👌": "ok_hand", "🤷": "shrug", "✍": "writing_hand",
}  # fmt: skip


def make(account: str, settings: SlackSettings, means: Means) -> SlackChannel:
    """The channel of `[channels.slack.ACCOUNT]`. Raises `ConfigError` when a token is missing."""
    return SlackChannel(account, settings, means)


class SlackChannel:
    """The bot of one app in one workspace."""

    def __init__(self, account: str, settings: SlackSettings, means: Means, *, sleep: Sleep = asyncio.sleep) -> None:
        tokens = {"bot_token": settings.bot_token, "app_token": settings.app_token}
        found = {name: means.secret(value) if value else "" for name, value in tokens.items()}
        for name, token in found.items():
            if not token:
                raise ConfigError(f"channels.slack.{account}.{name} is empty", hint=TOKENS)
        self._account = account
        self._blob = means.blob
        self._rest = Rest("Slack", proxy=settings.proxy)
        self._api = Api(found["bot_token"], found["app_token"], base_url=settings.base_url, rest=self._rest)
        self._reader = Reader(account, self._api, settings.threads)
        self._stream = Stream(
            self._api, self._reader, rest=self._rest, folder=means.folder, clock=means.clock, sleep=sleep
        )

    @property
    def name(self) -> str:
        return "slack"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        # One message a second in a channel, fifty changes a minute (docs.slack.dev/apis/web-api/rate-limits).
        # Only assistants' panels show who is typing.
        return Traits(
            markup="slack",
            limit=LIMIT,
            edit_every=2.0,
            reactions=True,
            buttons=True,
            upload=_LARGEST,
            caption=LIMIT,
            needs_link=False,
        )

    async def run(self, desk: Desk) -> None:
        await self._stream.run(desk)

    async def close(self) -> None:
        await self._rest.close()

    async def send(self, piece: Piece) -> str:
        if piece.attachments:
            return await self._upload(piece)
        params: dict[str, Value] = {"channel": piece.address.chat, **_said(piece), **_thread(piece.address)}
        params |= {"unfurl_links": False, "unfurl_media": False}
        return (await self._api.call("chat.postMessage", Posted, params)).ts

    async def _upload(self, piece: Piece) -> str:
        """Lay all files ready, then show them in one message, whose id Slack does not tell."""
        files: list[object] = []
        for one in piece.attachments:
            try:
                data = await asyncio.to_thread(Path(self._blob(one.blob)).read_bytes)
            except FileNotFoundError:
                raise RefusedError("the file to be sent is gone") from None
            files.append({"id": await self._api.put(one.name, data), "title": one.name})
        params: dict[str, Value] = {"channel_id": piece.address.chat, "files": files, **_thread(piece.address)}
        if piece.body.markup or piece.choices:
            said = _said(piece)
            params |= {"blocks": said["blocks"]} if piece.choices else {"initial_comment": said["text"]}
        await self._api.call("files.completeUploadExternal", Nothing, params)
        return ""

    async def edit(self, piece: Piece, message: str) -> None:
        params: dict[str, Value] = {"channel": piece.address.chat, "ts": _ts(message), **_said(piece)}
        await self._api.call("chat.update", Nothing, params)

    async def remove(self, address: Address, message: str) -> None:
        try:
            await self._api.call("chat.delete", Nothing, {"channel": address.chat, "ts": _ts(message)})
        except ApiError as error:
            if error.code != "message_not_found":
                raise

    async def typing(self, address: Address) -> None:
        pass

    async def react(self, address: Address, message: str, emoji: str) -> None:
        wanted = _NAMES.get(emoji.removesuffix("\ufe0f"), "")
        if emoji and not wanted:
            raise RefusedError(f"no name is known for {emoji}, by which Slack calls reactions")
        at: dict[str, Value] = {"channel": address.chat, "timestamp": _ts(message)}
        there = (await self._api.call("reactions.get", MessageAnswer, at)).message.reactions
        ours = [one.name for one in there if self._reader.me in one.users and one.name in _NAMES.values()]
        for name in ours:
            if name != wanted:
                await self._react("reactions.remove", {**at, "name": name}, "no_reaction")
        if wanted and wanted not in ours:
            await self._react("reactions.add", {**at, "name": wanted}, "already_reacted")

    async def _react(self, method: str, params: dict[str, Value], done: str) -> None:
        try:
            await self._api.call(method, Nothing, params)
        except ApiError as error:
            if error.code != done:
                raise

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        """Slack's commands are set in the app's own settings; ours are remembered to know them by."""
        self._reader.commands |= {entry.name for entry in menu}


def _said(piece: Piece) -> dict[str, Value]:
    """Text, and where there are buttons the blocks that show both. Without any, blocks of before go away."""
    text = piece.body.markup
    if len(text) > LIMIT:
        raise RefusedError(f"a message holds at most {LIMIT} characters")
    blocks: list[object] = []
    if piece.choices:
        blocks += [
            {"type": "section", "text": {"type": "mrkdwn", "text": part, "verbatim": True}} for part in _cut(text)
        ]
        buttons: list[object] = [
            {
                "type": "button",
                "action_id": f"choice{at}",
                "text": {"type": "plain_text", "text": one.label[:75], "emoji": True},
                "value": one.says,
            }
            for at, one in enumerate(piece.choices[:_BUTTONS])
        ]
        blocks.append({"type": "actions", "elements": buttons})
    return {"text": text, "blocks": blocks}


def _cut(text: str) -> list[str]:
    """A text as sections hold it, cut at a line end where there is one."""
    if len(text) <= _SECTION:
        return [text] if text.strip() else []
    at = text.rfind("\n", 1, _SECTION) + 1 or _SECTION
    return [text[:at], text[at:]] if len(text) - at <= _SECTION else [text[:_SECTION], text[_SECTION:]]


def _thread(address: Address) -> dict[str, Value]:
    return {"thread_ts": address.thread} if address.thread else {}


def _ts(message: str) -> str:
    if not _TS.fullmatch(message):
        raise RefusedError(f"{message!r} is no message of Slack's")
    return message
