"""What comes in, by Socket Mode: an envelope is acknowledged after `Desk.receive` has returned.

Slack gives an envelope again that was not acknowledged within 3 seconds: known by its event, it is taken once. What was
said while nothing was connected is fetched from the conversations that the bot is in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from limpet.channels.kept import Kept, noted
from limpet.channels.rest import ANSWER, Rest, together
from limpet.channels.slack.api import Api, ApiError, Value
from limpet.channels.slack.reading import Reader
from limpet.channels.slack.wire import (
    ChatsAnswer,
    Envelope,
    Event,
    History,
    Interactive,
    Kind,
    Me,
    Message,
    Opened,
    Slash,
)
from limpet.errors import ChannelError, NotAcceptedError, RefusedError, StoreError
from limpet.types.channel import Arrival, Desk
from limpet.types.ports import Clock

if TYPE_CHECKING:
    from aiohttp import ClientWebSocketResponse

_Kind = TypeVar("_Kind")
Sleep = Callable[[float], Awaitable[None]]
"""`asyncio.sleep`, or a test's."""
log = logging.getLogger(__name__)

_LEAVING = 15.0
"""Seconds for which a connection that Slack is about to end is still listened to."""
_PING = 20.0
_RECENT = 2_000
_CHATS = 200
"""Conversations that are looked through after a time without connection."""
_THREADS = 50
_PAGES = 5
_SCOPES = "Add channels:history, groups:history, im:history and mpim:history, and install the app again."


class State(Struct, frozen=True):
    """The newest message of each conversation (a channel, or channel and thread with a blank) and of all (`since`)."""

    since: str = ""
    marks: dict[str, str] = {}


class Stream:
    """The events of one app."""

    def __init__(
        self, api: Api, reader: Reader, *, rest: Rest, folder: str, clock: Clock, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._sleep = sleep
        self._api = api
        self._reader = reader
        self._rest = rest
        self._clock = clock
        self._kept = Kept(folder, "heard.json", State())
        self._recent: dict[str, None] = {}
        self._held: list[tuple[str, str]] | None = None
        self._turn = asyncio.Lock()

    async def run(self, desk: Desk) -> None:
        """Until cancelled. Raises `ChannelError` when the connection is lost, `RefusedError` for good."""
        me = await self._api.call("auth.test", Me)
        self._reader.me, self._reader.team = me.user_id, me.team_id
        arrived: asyncio.Queue[tuple[ClientWebSocketResponse, Envelope]] = asyncio.Queue()
        self._held = []
        await together(self._listen(arrived, desk), self._work(arrived, desk), self._catch_up(desk))

    async def _listen(self, arrived: asyncio.Queue[tuple[ClientWebSocketResponse, Envelope]], desk: Desk) -> None:
        """Keep a connection; before Slack ends one, the next one stands."""
        socket: ClientWebSocketResponse | None = None
        leaving: set[asyncio.Task[None]] = set()
        try:
            while True:
                socket = await self._connect()
                desk.up()
                if not await self._read(socket, arrived):
                    raise ChannelError("the connection to Slack has ended")
                task = asyncio.create_task(self._leave(socket, arrived))
                leaving.add(task)
                task.add_done_callback(leaving.discard)
                socket = None
        finally:
            for task in leaving:
                task.cancel()
            await asyncio.gather(*leaving, return_exceptions=True)
            if socket is not None:
                await socket.close()

    async def _connect(self) -> ClientWebSocketResponse:
        url = (await self._api.call("apps.connections.open", Opened, app=True)).url
        socket = await self._rest.socket(url, heartbeat=_PING)
        try:
            hello = _envelope(await socket.receive_str(timeout=ANSWER))
        except (TypeError, TimeoutError):
            hello = Envelope("")
        if hello.type != "hello":
            await socket.close()
            if hello.reason == "link_disabled":
                raise _switched_off()
            raise ChannelError(f"Slack did not say hello: {hello.reason or 'the connection has ended'}")
        return socket

    async def _read(
        self, socket: ClientWebSocketResponse, arrived: asyncio.Queue[tuple[ClientWebSocketResponse, Envelope]]
    ) -> bool:
        """Until the connection ends; True: Slack has told that it is about to end."""
        async for message in socket:
            envelope = _envelope(message.data) if isinstance(message.data, str) else Envelope("")
            if envelope.type == "disconnect":
                if envelope.reason == "link_disabled":
                    raise _switched_off()
                return True
            if envelope.envelope_id:
                arrived.put_nowait((socket, envelope))
        return False

    async def _leave(
        self, socket: ClientWebSocketResponse, arrived: asyncio.Queue[tuple[ClientWebSocketResponse, Envelope]]
    ) -> None:
        try:
            async with asyncio.timeout(_LEAVING):
                while await self._read(socket, arrived):
                    pass
        except TimeoutError:
            pass
        finally:
            await socket.close()

    async def _work(self, arrived: asyncio.Queue[tuple[ClientWebSocketResponse, Envelope]], desk: Desk) -> None:
        """Take envelopes in their order. One that cannot be read is left out, and the log says so."""
        while True:
            socket, envelope = await arrived.get()
            try:
                await self._take(envelope, desk)
            except msgspec.DecodeError as error:
                log.warning("slack %s: %s is left out: %s", self._reader.account, envelope.type, error)
            # On a connection that has ended meanwhile: Slack gives it again, and we know it then.
            with contextlib.suppress(ConnectionError):
                await socket.send_str(msgspec.json.encode({"envelope_id": envelope.envelope_id}).decode())

    async def _take(self, envelope: Envelope, desk: Desk) -> None:
        if envelope.type == "events_api":
            told = msgspec.json.decode(envelope.payload, type=Event)
            if msgspec.json.decode(told.event, type=Kind).type in ("message", "app_mention"):
                await self._receive(msgspec.json.decode(told.event, type=Message), told.team_id, desk)
        elif envelope.type == "interactive":
            await self._store(self._reader.pressed(msgspec.json.decode(envelope.payload, type=Interactive)), desk)
        elif envelope.type == "slash_commands":
            await self._store(self._reader.command(msgspec.json.decode(envelope.payload, type=Slash)), desk)

    async def _receive(self, message: Message, team: str, desk: Desk) -> None:
        await self._store(await self._reader.message(message, team), desk)
        if message.ts and message.subtype != "message_changed":
            thread = message.thread_ts if message.thread_ts != message.ts else ""
            self._note(f"{message.channel} {thread}".rstrip(), message.ts)

    async def _store(self, arrival: Arrival | None, desk: Desk) -> None:
        """Hand an arrival over, unless that was done; one after the other, whichever way they came."""
        async with self._turn:
            if arrival is None or arrival.event in self._recent:
                return
            try:
                await desk.receive(arrival)
            except StoreError as error:
                raise ChannelError(f"what came in could not be stored: {error}") from None
            self._recent[arrival.event] = None
            if len(self._recent) > _RECENT:
                del self._recent[next(iter(self._recent))]

    def _note(self, place: str, ts: str) -> None:
        """Remember how far we are; not before what was missed has been fetched."""
        if self._held is not None:
            self._held.append((place, ts))
            return
        state = self._kept.value
        if ts > state.marks.get(place, ""):
            marks = noted(state.marks, place, ts)
            self._kept.save(replace(state, since=max(state.since, ts), marks=marks))

    async def _catch_up(self, desk: Desk) -> None:
        """Fetch what was said while nothing was connected, beside what comes in; then wait for ever."""
        state = self._kept.value
        if state.since:
            for place, since in await self._missed(state):
                await self._fetch(place, since, desk)
        else:
            self._kept.save(replace(state, since=f"{self._clock.now() / 1000:.6f}"))
        held, self._held = self._held or [], None
        for place, ts in held:
            self._note(place, ts)
        await asyncio.Event().wait()

    async def _missed(self, state: State) -> list[tuple[str, str]]:
        """The conversations to look through, each with the message after which."""
        kinds = "public_channel,private_channel,mpim,im"
        params: dict[str, Value] = {"types": kinds, "exclude_archived": True, "limit": _CHATS}
        found: list[str] = []
        try:
            found = [chat.id for chat in (await self._patiently("users.conversations", ChatsAnswer, params)).channels]
        except ApiError as error:
            log.warning("slack %s: not all that was missed can be found: %s", self._reader.account, error)
        if len(found) >= _CHATS:
            log.warning("slack %s: only %d conversations are looked through", self._reader.account, _CHATS)
        heard = [place for place in state.marks if " " not in place]
        threads = [place for place in state.marks if " " in place][-_THREADS:]
        chats = list(dict.fromkeys([*found, *heard]))[:_CHATS]
        return [(place, state.marks.get(place, state.since)) for place in (*chats, *threads)]

    async def _fetch(self, place: str, since: str, desk: Desk) -> None:
        """Take what was said in a conversation after `since`, oldest first."""
        channel, _, thread = place.partition(" ")
        params: dict[str, Value] = {"channel": channel, "oldest": since, "limit": 200}
        method = "conversations.replies" if thread else "conversations.history"
        if thread:
            params["ts"] = thread
        messages: list[Message] = []
        for _ in range(_PAGES):
            try:
                page = await self._patiently(method, History, params)
            except ApiError as error:
                hint = _SCOPES if error.code == "missing_scope" else ""
                log.warning("slack %s: %s was not looked through: %s %s", self._reader.account, place, error, hint)
                return
            messages += page.messages
            cursor = page.response_metadata.next_cursor if page.response_metadata is not None else ""
            if not cursor:
                break
            params["cursor"] = cursor
        else:
            log.warning("slack %s: older messages of %s are left out", self._reader.account, place)
        for message in sorted(messages, key=lambda one: one.ts):
            if message.ts > since:
                await self._receive(replace(message, channel=channel), "", desk)

    async def _patiently(self, method: str, kind: type[_Kind], params: dict[str, Value]) -> _Kind:
        """A call that Slack may have done later, as often as it says."""
        while True:
            try:
                return await self._api.call(method, kind, params)
            except NotAcceptedError as error:
                if not error.retry_after:
                    raise
                await self._sleep(error.retry_after)


def _switched_off() -> RefusedError:
    return RefusedError(
        "Socket Mode is off for this app", hint="api.slack.com/apps, your app, Socket Mode: turn it on."
    )


def _envelope(data: str) -> Envelope:
    try:
        return msgspec.json.decode(data, type=Envelope)
    except msgspec.DecodeError:
        return Envelope("")
