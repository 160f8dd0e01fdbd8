"""What comes in, by Discord's gateway: a session that is taken up again where the last stored message left it.

Discord keeps what a session has not confirmed and gives it again when the session is resumed, also to a new process.
The number that we resume from, and that heartbeats confirm, is that of the last event which `Desk.receive` has stored.
When the session is over, what was said meanwhile is fetched from the chats we know.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from limpet.channels.discord.api import TOKEN, Api, ApiError
from limpet.channels.discord.reading import Reader, first_id
from limpet.channels.discord.wire import Entry, Frame, Guild, Interaction, Message, Named, Ready
from limpet.channels.kept import Kept, noted
from limpet.channels.rest import ANSWER, Rest, together
from limpet.errors import ChannelError, NotAcceptedError, RefusedError, StoreError
from limpet.types.channel import Arrival, Desk
from limpet.types.ports import Clock

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

log = logging.getLogger(__name__)

INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
"""Guilds, messages in guilds, messages between two, and what messages say."""
_PAGES = 10
_RESUMABLE = 4000
"""With 1000 and 1001 a client ends its session; with others it can be resumed."""
_REFUSED = {
    4004: ("Discord does not know this token", TOKEN),
    4010: ("Discord does not take this shard", ""),
    4011: ("this bot is in too many servers for one connection", ""),
    4012: ("Discord no longer speaks this version of its gateway", ""),
    4013: ("Discord does not take these intents", ""),
    4014: (
        "this bot may not read messages",
        "Turn Message Content Intent on: Developer Portal, Bot, Privileged Gateway Intents.",
    ),
}
_OVER = (4007, 4009)
_CHANGED = ("CHANNEL_UPDATE", "CHANNEL_DELETE", "THREAD_UPDATE", "THREAD_DELETE")


class State(Struct, frozen=True):
    """The session with the number of its last stored event, the newest message of each chat, and of all (`since`)."""

    session: str = ""
    url: str = ""
    seq: int = 0
    me: str = ""
    roles: tuple[str, ...] = ()
    since: str = ""
    marks: dict[str, str] = {}


class Stream:
    """The events of one bot."""

    def __init__(self, api: Api, reader: Reader, *, rest: Rest, folder: str, clock: Clock) -> None:
        self._api = api
        self._reader = reader
        self._rest = rest
        self._clock = clock
        self._kept = Kept(folder, "gateway.json", State())
        self._missed: set[str] = set()
        self._since = ""
        self._acked = True

    async def run(self, desk: Desk) -> None:
        """Until cancelled. Raises `ChannelError` when a connection is lost, `RefusedError` for good."""
        state = self._kept.value
        self._reader.me, self._reader.roles = state.me, set(state.roles)
        while True:
            socket = await self._connect()
            try:
                interval = await self._greet(socket)
                frames: asyncio.Queue[Frame] = asyncio.Queue()
                self._acked = True
                await together(self._read(socket, frames, desk), self._beat(socket, interval), self._work(frames, desk))
            finally:
                await socket.close(code=_RESUMABLE)
            desk.down("Discord asked for a new connection")

    async def _connect(self) -> ClientWebSocketResponse:
        url = self._kept.value.url if self._kept.value.session else ""
        if not url:
            entry = await self._api.call("GET", "/gateway/bot", Entry)
            if not entry.session_start_limit.remaining:
                wait = entry.session_start_limit.reset_after / 1000
                raise NotAcceptedError("Discord allows this bot no more sessions today", retry_after=wait)
            url = entry.url
        try:
            return await self._rest.socket(f"{url.rstrip('/')}/?v=10&encoding=json")
        except ChannelError:
            self._kept.save(replace(self._kept.value, url=""))  # the next try asks for another
            raise

    async def _greet(self, socket: ClientWebSocketResponse) -> float:
        """Resume the session or begin one; gives the seconds between two heartbeats."""
        try:
            hello = _frame(await socket.receive_str(timeout=ANSWER))
            interval = msgspec.json.decode(hello.d, type=dict[str, object]).get("heartbeat_interval")
        except (TypeError, TimeoutError, msgspec.DecodeError):
            raise ChannelError("Discord's gateway did not say hello") from None
        state, token = self._kept.value, self._api.token
        if state.session:
            await _send(socket, 6, {"token": token, "session_id": state.session, "seq": state.seq})
        else:
            names = {"os": "linux", "browser": "limpet", "device": "limpet"}
            await _send(socket, 2, {"token": token, "intents": INTENTS, "properties": names})
        return (interval if isinstance(interval, int | float) else 41_250) / 1000

    async def _read(self, socket: ClientWebSocketResponse, frames: asyncio.Queue[Frame], desk: Desk) -> None:
        """Until Discord asks for a new connection. Heartbeats are answered while messages are being stored."""
        async for message in socket:
            frame = _frame(message.data) if isinstance(message.data, str) else Frame(0)
            if frame.op == 0 and frame.t is not None:
                frames.put_nowait(frame)
            elif frame.op == 1:
                await _send(socket, 1, self._kept.value.seq or None)
            elif frame.op == 7:
                return
            elif frame.op == 9:
                self._forget(unless=bytes(frame.d) == b"true")
                raise ChannelError("Discord has ended the session")
            elif frame.op == 11:
                self._acked = True
                desk.up()
        code = socket.close_code or 0
        if code in _REFUSED:
            self._forget()
            raise RefusedError(_REFUSED[code][0], hint=_REFUSED[code][1])
        self._forget(unless=code not in _OVER)
        raise ChannelError(f"the connection to Discord has ended ({code})")

    async def _beat(self, socket: ClientWebSocketResponse, interval: float) -> None:
        await asyncio.sleep(interval * random.random())
        while True:
            if not self._acked:
                raise ChannelError("Discord no longer answers")
            self._acked = False
            await _send(socket, 1, self._kept.value.seq or None)
            await asyncio.sleep(interval)

    async def _work(self, frames: asyncio.Queue[Frame], desk: Desk) -> None:
        """Take events in their order. One that cannot be read is left out, and the log says so."""
        while True:
            frame = await frames.get()
            try:
                await self._take(frame, desk)
            except msgspec.DecodeError as error:
                log.warning("discord %s: %s is left out: %s", self._reader.account, frame.t, error)
            except StoreError as error:
                raise ChannelError(f"what came in could not be stored: {error}") from None
            if frame.s is not None:
                self._kept.save(replace(self._kept.value, seq=frame.s))

    async def _take(self, frame: Frame, desk: Desk) -> None:
        if frame.t == "READY":
            await self._begin(msgspec.json.decode(frame.d, type=Ready), desk)
            desk.up()
        elif frame.t == "RESUMED":
            desk.up()
        elif frame.t == "GUILD_CREATE":
            await self._arrive(msgspec.json.decode(frame.d, type=Guild), desk)
        elif frame.t in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            message = msgspec.json.decode(frame.d, type=Message)
            if frame.t == "MESSAGE_CREATE" or message.edited_timestamp:
                await self._receive(message, desk)
        elif frame.t == "INTERACTION_CREATE":
            one = msgspec.json.decode(frame.d, type=Interaction)
            await self._hand_over(await self._reader.interaction(one), desk)
            await self._release(one)
        elif frame.t in _CHANGED:
            self._api.forget(msgspec.json.decode(frame.d, type=Named).id)

    async def _receive(self, message: Message, desk: Desk) -> None:
        await self._hand_over(await self._reader.message(message), desk)
        if not message.edited_timestamp:
            state = self._kept.value
            newest = max(state.since or "0", message.id, key=int)
            marks = noted(state.marks, message.channel_id, message.id)
            self._kept.save(replace(state, since=newest, marks=marks))

    async def _hand_over(self, arrival: Arrival | None, desk: Desk) -> None:
        if arrival is not None:
            await desk.receive(arrival)

    async def _release(self, one: Interaction) -> None:
        """Tell Discord within 3 s that it has worked, or it shows a failure; no harm is done when we are late."""
        told = {"type": 6} if one.type == 3 else {"type": 4, "data": {"content": "✓", "flags": 64}}
        try:
            await self._api.call("POST", f"/interactions/{one.id}/{one.token}/callback", type(None), body=told)
        except ChannelError as error:
            log.info("discord %s: an interaction was not released: %s", self._reader.account, error)

    async def _begin(self, ready: Ready, desk: Desk) -> None:
        """A new session: fetch what was said since the last one in chats that have been heard."""
        state = self._kept.value
        self._reader.me = ready.user.id
        self._missed = {guild.id for guild in ready.guilds} if state.since else set()
        self._since = state.since
        for place, mark in state.marks.items():
            await self._fetch(place, mark, desk)
        since = state.since or first_id(self._clock.now())
        fresh = replace(self._kept.value, since=max(since, self._kept.value.since or "0", key=int), me=ready.user.id)
        self._kept.save(replace(fresh, session=ready.session_id, url=ready.resume_gateway_url))

    async def _arrive(self, guild: Guild, desk: Desk) -> None:
        """A guild we are in: our own roles, and messages in chats of it that we had not heard."""
        self._reader.roles |= {role.id for role in guild.roles if role.tags.bot_id == self._reader.me}
        self._kept.save(replace(self._kept.value, roles=tuple(sorted(self._reader.roles))))
        if guild.id not in self._missed:
            return
        for place in (*guild.channels, *guild.threads):
            last = place.last_message_id
            if last and int(last) > int(self._since) and place.id not in self._kept.value.marks:
                await self._fetch(place.id, self._since, desk)
        self._missed.discard(guild.id)

    async def _fetch(self, place: str, mark: str, desk: Desk) -> None:
        """Take what was said in a chat after the message `mark`, oldest first."""
        for _ in range(_PAGES):
            path = f"/channels/{place}/messages?after={mark}&limit=100"
            try:
                found = await self._patiently(path)
            except ApiError as error:
                log.info("discord %s: a chat is no longer read: %s", self._reader.account, error)
                return
            for message in sorted(found, key=lambda one: int(one.id)):
                await self._receive(replace(message, edited_timestamp=None), desk)
                mark = message.id
            if len(found) < 100:
                return
        log.warning("discord %s: %d messages of %s were fetched, more are left out", self._reader.account, 1000, place)

    async def _patiently(self, path: str) -> list[Message]:
        """Messages, as late as Discord wants them to be asked for."""
        while True:
            try:
                return await self._api.call("GET", path, list[Message])
            except NotAcceptedError as error:
                if not error.retry_after:
                    raise
                await asyncio.sleep(error.retry_after)

    def _forget(self, *, unless: bool = False) -> None:
        """The session cannot be resumed."""
        if not unless:
            self._kept.save(replace(self._kept.value, session="", url="", seq=0))


def _frame(data: str) -> Frame:
    try:
        return msgspec.json.decode(data, type=Frame)
    except msgspec.DecodeError:
        return Frame(0)


async def _send(socket: ClientWebSocketResponse, op: int, value: object) -> None:
    try:
        await socket.send_str(msgspec.json.encode({"op": op, "d": value}).decode())
    except ConnectionError:
        raise ChannelError("the connection to Discord has ended") from None
