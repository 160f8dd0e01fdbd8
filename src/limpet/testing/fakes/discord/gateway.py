"""The gateway of the fake Discord: sessions, what they have not confirmed, heartbeats and intents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from aiohttp import WSMsgType, web

from limpet.testing.fakes.discord.rooms import APP, ME, Json, Rooms
from limpet.testing.fakes.shape import fields

_GUILDS, _IN_GUILDS, _ALONE, _CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15


class Session:
    """One session: the events it has not confirmed, and its connection where there is one."""

    def __init__(self, id: str, intents: int) -> None:
        self.id = id
        self.intents = intents
        self.last = 0
        self.kept: list[Json] = []
        self.socket: web.WebSocketResponse | None = None
        self.request: web.Request | None = None

    def keep(self, name: str, data: Json) -> Json:
        self.last += 1
        frame: Json = {"op": 0, "s": self.last, "t": name, "d": data}
        self.kept.append(frame)
        return frame

    def confirm(self, seq: object) -> None:
        if isinstance(seq, int):
            self.kept = [frame for frame in self.kept if isinstance(frame["s"], int) and frame["s"] > seq]


class Gateway:
    """`heartbeat` in seconds; `deaf`: heartbeats get no answer. `privileged`: what messages say may be read."""

    def __init__(self, rooms: Rooms, *, token: Callable[[], str], heartbeat: float, privileged: bool) -> None:
        self._rooms = rooms
        self._token = token
        self.heartbeat = heartbeat
        self.privileged = privileged
        self.deaf = False
        self.url = ""
        self.sessions: dict[str, Session] = {}
        self.begun: list[str] = []
        self.faults: list[str] = []

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            await socket.close(code=4012)
            return socket
        await socket.send_json({"op": 10, "s": None, "t": None, "d": {"heartbeat_interval": self.heartbeat * 1000}})
        session: Session | None = None
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    session = await self._hear(socket, msgspec.json.decode(message.data, type=Json), session)
                    if session is not None:
                        session.request = request
            if session is not None and socket.close_code in (1000, 1001):
                self.sessions.pop(session.id, None)
        finally:
            if session is not None and session.socket is socket:
                session.socket = None
        return socket

    async def _hear(self, socket: web.WebSocketResponse, frame: Json, session: Session | None) -> Session | None:
        op, data = frame.get("op"), frame.get("d")
        if op == 1:
            if session is not None:
                session.confirm(data)
            if not self.deaf:
                await socket.send_json({"op": 11})
            return session
        found = fields(data or {}, "d")
        if session is not None or op not in (2, 6):
            await socket.close(code=4005 if op in (2, 6) else 4003 if session is None else 4001)
        elif found.get("token") != self._token():
            await socket.close(code=4004)
        elif op == 2:
            return await self._identify(socket, found)
        else:
            return await self._resume(socket, found)
        return session

    async def _identify(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
        intents = data.get("intents")
        if not isinstance(intents, int) or intents >> 26 or "properties" not in data:
            await socket.close(code=4013)
            return None
        if intents & _CONTENT and not self.privileged:
            await socket.close(code=4014)
            return None
        session = Session(f"session{len(self.begun) + 1}", intents)
        self.begun.append(session.id)
        self.sessions = {session.id: session}
        session.socket = socket
        guilds = sorted({room.guild for room in self._rooms.rooms.values() if room.guild})
        ready: Json = {"v": 10, "user": self._rooms.user(ME), "session_id": session.id, "private_channels": []}
        ready |= {"resume_gateway_url": self.url, "application": {"id": APP, "flags": 0}}
        ready["guilds"] = [{"id": guild, "unavailable": True} for guild in guilds]
        await self._tell(session, "READY", ready)
        for guild in guilds:
            await self._tell(session, "GUILD_CREATE", self._rooms_of(guild))
        return session

    def _rooms_of(self, guild: str) -> Json:
        rooms = [room for room in self._rooms.rooms.values() if room.guild == guild]
        role: Json = {"id": "1002", "name": "Helper", "tags": {"bot_id": ME}}
        return {
            "id": guild,
            "name": "Friends",
            "roles": [role, {"id": "7", "name": "friend"}],
            "channels": [self._rooms.place(room) for room in rooms if room.type != 11],
            "threads": [self._rooms.place(room) for room in rooms if room.type == 11],
        }

    async def _resume(self, socket: web.WebSocketResponse, data: Json) -> Session | None:
        session = self.sessions.get(str(data.get("session_id")))
        seq = data.get("seq")
        if session is None:
            await socket.send_json({"op": 9, "d": False})
            return None
        if not isinstance(seq, int) or seq > session.last:
            await socket.close(code=4007)
            return None
        session.confirm(seq)
        session.socket = socket
        for frame in session.kept:
            await socket.send_json(frame)
        await self._tell(session, "RESUMED", {})
        return session

    async def tell(self, name: str, data: Json, *, alone: bool) -> None:
        """Give an event to every session that asked for such; without the intent messages say nothing."""
        for session in list(self.sessions.values()):
            wanted = _ALONE if alone else _IN_GUILDS
            if name.startswith("MESSAGE") and not session.intents & wanted:
                continue
            if name.startswith("MESSAGE") and not session.intents & _CONTENT and not alone:
                nothing: Json = {"content": "", "attachments": []}
                data = data | nothing
            await self._tell(session, name, data)

    async def _tell(self, session: Session, name: str, data: Json) -> None:
        frame = session.keep(name, data)
        if session.socket is not None and not session.socket.closed:
            try:
                await session.socket.send_json(frame)
            except ConnectionError:
                session.socket = None

    def waiting(self) -> list[Json]:
        """Messages and interactions that a new connection would be given."""
        told = ("MESSAGE_CREATE", "MESSAGE_UPDATE", "INTERACTION_CREATE")
        return [frame for session in self.sessions.values() for frame in session.kept if frame["t"] in told]

    async def send(self, frame: Json) -> None:
        """Put a frame of the gateway's own on each connection."""
        for session in list(self.sessions.values()):
            if session.socket is not None:
                await session.socket.send_json(frame)

    async def cut(self, code: int = 0) -> None:
        """End the connections: with `code`, or abruptly."""
        for session in list(self.sessions.values()):
            socket, session.socket = session.socket, None
            if socket is not None and code:
                await socket.close(code=code)
            elif socket is not None and session.request is not None and session.request.transport is not None:
                session.request.transport.abort()
        await asyncio.sleep(0)
