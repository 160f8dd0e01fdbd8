"""One WebSocket connection: what a client asks, what it is told, from which cursor on."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from limpet.errors import LimpetError
from limpet.server import protocol
from limpet.server.guard import Guard
from limpet.server.house import House
from limpet.server.protocol import Call, Connect, Event, Follow, History, Live, Message, Request, Send, Status
from limpet.store.outbox import Place
from limpet.types import event as events
from limpet.types.envelope import OutboxRow

log = logging.getLogger(__name__)

GREETING = 10.0
"""Seconds a client has for its first frame."""
PING = 20.0
LOOK = 1.0
PAGE = 100
"""Messages that are fetched at once."""
BACKLOG = 500
"""Live events that wait for a slow client; older ones are left out, for they are only a view."""
UNAUTHORISED, UNSUPPORTED, INVALID, FAILED = 4401, 4400, 4400, 1011
"""Codes with which a connection is closed."""
TOO_MANY = f"At most {protocol.MAX_CHATS} chats can be followed."


class Connection:
    """Speaks the protocol over `socket`. `run` is its life."""

    def __init__(self, socket: WebSocket, house: House, guard: Guard) -> None:
        self._socket = socket
        self._house = house
        self._guard = guard
        self._cursors: dict[str, Place] = {}
        self._live: deque[Event] = deque(maxlen=BACKLOG)
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        """Greet, then answer and tell until the client leaves."""
        await self._socket.accept()
        try:
            connect = await self._greeted()
            if connect is None:
                return
            for chat, cursor in connect.chats.items():
                self._follow(chat, cursor)
            with self._house.watch.listening(self._hear):
                await self._serve()
        except WebSocketDisconnect:
            pass
        except LimpetError as error:
            log.warning("a client is sent away: %s", error)
            await self._socket.close(FAILED)

    async def _serve(self) -> None:
        """Listen and tell; when one of both fails, the client had better connect again than wait."""
        works = (self._listen(), self._tell_messages(), self._tell_live())
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            await self._answer(await self._receive())

    async def _receive(self) -> bytes:
        frame = await self._socket.receive()
        if frame["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(int(frame.get("code", 1005)))
        text = frame.get("text")
        return text.encode("utf-8", "replace") if isinstance(text, str) else bytes(frame.get("bytes") or b"")

    async def _greeted(self) -> Connect | None:
        """The client's first frame, when it may in; else it is told why not, and the connection ends."""
        peer = self._socket.client.host if self._socket.client else ""
        try:
            async with asyncio.timeout(GREETING):
                frame = protocol.read(await self._receive())
        except (msgspec.MsgspecError, TimeoutError, RecursionError) as error:
            return await self._refuse(
                "invalid", f"The first frame has to be `connect`: {error or 'none came'}.", INVALID
            )
        if not isinstance(frame, Connect):
            return await self._refuse("invalid", "The first frame has to be `connect`.", INVALID)
        if not self._guard.admits(frame.token, peer):
            return await self._refuse("unauthorised", "The token is wrong.", UNAUTHORISED)
        if frame.protocol != protocol.VERSION:
            return await self._refuse("unsupported", f"This server speaks version {protocol.VERSION}.", UNSUPPORTED)
        if len(frame.chats) > protocol.MAX_CHATS:
            return await self._refuse("too_large", TOO_MANY, INVALID)
        await self._send(protocol.Hello(protocol.VERSION, self._house.name, PING))
        return frame

    async def _refuse(self, code: str, message: str, close: int) -> None:
        await self._send(protocol.Refusal(protocol.Fault(code, message)))
        await self._socket.close(close)

    async def _answer(self, text: bytes) -> None:
        """Answer one request; a frame that is none is answered with its id where it has one."""
        if len(text) > protocol.MAX_FRAME:
            await self._fault("", "too_large", f"A frame has at most {protocol.MAX_FRAME:,} bytes.")
            return
        try:
            frame = protocol.read(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            await self._fault(protocol.id_of(text), "invalid", str(error))
            return
        if not isinstance(frame, Request):
            await self._fault("", "invalid", "Connected already.")
            return
        if isinstance(frame.call, Follow) and len({*self._cursors, frame.call.chat}) > protocol.MAX_CHATS:
            await self._fault(frame.id, "too_large", TOO_MANY)
            return
        try:
            result = await self._do(frame.call)
        except LimpetError as error:
            await self._fault(frame.id, "failed", error.present())
            return
        await self._send(protocol.Response(frame.id, result=result))

    async def _do(self, call: Call) -> protocol.Sent | protocol.Following | protocol.Told | protocol.Health:
        match call:
            case Send():
                return protocol.Sent(await self._house.say(call.chat, call.text, call.key))
            case Follow():
                self._follow(call.chat, call.cursor)
                return protocol.Following()
            case History():
                return protocol.Told(self._house.history(call.chat, call.limit))
            case Status():
                return self._house.health()

    async def _fault(self, request: str, code: str, message: str) -> None:
        await self._send(protocol.Response(request, error=protocol.Fault(code, message)))

    def _follow(self, chat: str, cursor: str) -> None:
        place, _, row = cursor.partition(".")
        here = Place(int(place), int(row)) if cursor else self._house.newest(chat)
        self._cursors[chat] = here
        self._news.set()

    async def _tell_messages(self) -> None:
        """Tell of each message after the cursors, in order, until cancelled."""
        while True:
            told = 0
            for chat, cursor in tuple(self._cursors.items()):
                for row in self._house.messages(chat, cursor, limit=PAGE):
                    here = Place(row.place, row.id)
                    await self._send(Event(chat, _message(row), f"{here.place}.{here.row}"))
                    self._cursors[chat] = here
                    told += 1
            if not told:
                await self._house.nudges.wait(LOOK)

    def _hear(self, key: str, event: events.Event) -> None:
        """Take an event of a turn in a chat that is followed."""
        live = _live(event)
        if live is None:
            return
        for chat in self._cursors:
            if self._house.key_of(chat) == key:
                self._live.append(Event(chat, live))
                self._news.set()

    async def _tell_live(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._live:
                await self._send(self._live.popleft())

    async def _send(self, frame: protocol.ServerFrame) -> None:
        async with self._writing:
            await self._socket.send_text(protocol.write(frame).decode())


def _message(row: OutboxRow) -> Message:
    return Message(
        text=row.body.plain if row.body is not None else row.text,
        at=row.created,
        is_notice=row.kind != "reply",
        buttons=tuple(protocol.Button(one.label, one.says) for one in row.beside.choices),
        files=tuple(
            protocol.FileLink(one.name, one.mime, one.size, f"/files/{one.blob}") for one in row.beside.attachments
        ),
    )


def _live(event: events.Event) -> Live | None:
    match event:
        case events.TurnStarted():
            return Live("started")
        case events.TextDelta(text=text):
            return Live("text", text)
        case events.AnswerReset(reason=reason):
            return Live("again", reason)
        case events.ToolBegan(name=name, arguments=arguments):
            return Live("tool", arguments, name)
        case events.ToolProgress(text=text):
            return Live("progress", text)
        case events.ToolEnded(name=name, text=text):
            return Live("result", text, name)
        case events.Notice(text=text):
            return Live("notice", text)
        case events.TurnEnded(state=state):
            return Live("ended", state)
        case _:
            return None
