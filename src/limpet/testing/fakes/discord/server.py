"""The fake Discord as a server on loopback, and the hands of the people who talk to the bot."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from datetime import UTC, datetime
from typing import Self

import msgspec
from aiohttp import web

from limpet.testing.fakes.discord.gateway import Gateway
from limpet.testing.fakes.discord.rooms import ME, Fault, Json, Posted, Room, Rooms, Way
from limpet.testing.fakes.discord.routes import Files, Routes, decode
from limpet.testing.fakes.shape import Refused

PLAINLY = Way()
GUILD = "500"


class FakeDiscord:
    """`async with FakeDiscord() as discord`: `base_url` and `token` are what settings take.

    People are 11 (ann, alone with the bot in 91) and 12 (bob, in 92); more rooms come by `room`. `calls` is all that
    was asked (method and path), `refusals` all that was refused. `privileged`: the bot may read what messages say.
    """

    token = "MTAwMA.fake-token_of.discord"

    def __init__(self, *, privileged: bool = True, heartbeat: float = 0.05) -> None:
        self.rooms = Rooms()
        self.calls: list[tuple[str, str]] = []
        self.bodies: list[object] = []
        self.refusals: list[str] = []
        self.base_url = ""
        self.ahead = 0.0
        self.gateway = Gateway(self.rooms, token=lambda: self.token, heartbeat=heartbeat, privileged=privileged)
        self.routes = Routes(self.rooms, lambda: time.monotonic() + self.ahead)
        self.starts = 1000
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._port = 0
        self._runner: web.AppRunner | None = None
        for id, name in (("11", "ann"), ("12", "bob")):
            self.rooms.people[id] = name
            self.rooms.rooms[f"9{id[1]}"] = Room(id=f"9{id[1]}", type=1)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shut()

    async def open(self) -> None:
        """Listen, on the port of before if there was one."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_get("/gw/", self.gateway.serve)
        app.router.add_get("/cdn/{path:.*}", self._file)
        app.router.add_route("*", "/api/v10/{path:.*}", self._called)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}/api/v10"
        self.rooms.cdn = f"http://127.0.0.1:{self._port}/cdn"
        self.gateway.url = f"ws://127.0.0.1:{self._port}/gw"

    async def shut(self) -> None:
        """Break all connections and refuse new ones."""
        await self.gateway.cut()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
            await asyncio.sleep(0.02)  # clients notice

    # What people do and see.

    def room(self, id: str, *, name: str = "general", parent: str = "") -> Room:
        """A channel of the guild, or a thread of `parent`."""
        room = Room(id=id, type=11 if parent else 0, guild=GUILD, name=name, parent=parent)
        self.rooms.rooms[id] = room
        return room

    async def say(self, text: str, *, sender: str = "11", place: str = "", way: Way = PLAINLY) -> Posted:
        """`sender` says `text` in `place` (empty: alone with the bot)."""
        room = self.rooms.rooms[place or f"9{sender[1]}"]
        mentions = (*way.mentions, *(id for id in re.findall(r"<@!?(\d+)>", text) if id in self.rooms.people))
        way = msgspec.structs.replace(way, mentions=mentions)
        files = (way.file,) if way.file is not None else ()
        post = Posted(id=self.rooms.next_id(), place=room.id, author=sender, text=text, way=way, files=files)
        post.reply_to = way.reply_to
        room.posts[post.id], room.last = post, post.id
        await self._told("MESSAGE_CREATE", post)
        return post

    async def change(self, post: Posted, text: str) -> None:
        """Its sender gives a message another wording."""
        post.text, post.edited = text, datetime.now(UTC).isoformat()
        await self._told("MESSAGE_UPDATE", post)

    async def unfurl(self, post: Posted) -> None:
        """Discord has found the preview of a link, and tells the message again."""
        await self._told("MESSAGE_UPDATE", post)

    async def press(self, post: Posted, says: str, *, sender: str = "11") -> str:
        """Somebody presses the button under `post` that says `says`; gives the id of the interaction."""
        if says not in [custom for _, custom in post.buttons]:
            raise ValueError(f"no button says {says!r}")
        data: Json = {"custom_id": says, "component_type": 2}
        told: Json = {"message": self.rooms.message(post, live=False)}
        return await self._interact(data, sender, room=self.rooms.rooms[post.place], told=told)

    async def command(self, name: str, value: str = "", *, sender: str = "11", place: str = "") -> str:
        """Somebody uses a slash command of the menu."""
        if name not in [one["name"] for one in self.routes.menu]:
            raise ValueError(f"the menu has no /{name}")
        data: Json = {"id": "1", "name": name, "type": 1}
        if value:
            data["options"] = [{"name": "input", "type": 3, "value": value}]
        return await self._interact(data, sender, room=self.rooms.rooms[place or f"9{sender[1]}"], told={})

    async def _interact(self, data: Json, sender: str, *, room: Room, told: Json) -> str:
        id = self.rooms.next_id()
        kind, type = ("button", 3) if "custom_id" in data else ("command", 2)
        self.routes.open[id] = (kind, time.monotonic() + self.ahead)
        event: Json = {"id": id, "application_id": "1001", "type": type, "data": data, "token": f"token{id}"}
        event |= {"channel_id": room.id, "version": 1} | told
        user = self.rooms.user(sender)
        event |= {"guild_id": GUILD, "member": self.rooms.member(sender) | {"user": user}} if room.guild else {}
        event |= {} if room.guild else {"user": user}
        await self.gateway.tell("INTERACTION_CREATE", event, alone=not room.guild)
        return id

    async def _told(self, name: str, post: Posted) -> None:
        alone = not self.rooms.rooms[post.place].guild
        await self.gateway.tell(name, self.rooms.message(post, live=True), alone=alone)

    def ours(self, place: str) -> list[Posted]:
        """The bot's messages that stand in a room, in order."""
        return [post for post in self.rooms.rooms[place].posts.values() if post.author == ME]

    def fault(self, route: str, *faults: Fault) -> None:
        """The next calls of `route` (method and path, as in `POST /channels/91/messages`) meet these, in order."""
        self._faults[route] += [fault for fault in faults for _ in range(fault.times)]

    # What the bot asks.

    async def _called(self, request: web.Request) -> web.StreamResponse:
        path = "/" + request.raw_path.partition("/api/v10/")[2].partition("?")[0]
        route = f"{request.method} {path}"
        self.calls.append((request.method, path))
        if request.headers.get("Authorization") != f"Bot {self.token}":
            return self._refused(Refused("401: Unauthorized", status=401, code="0"))
        if not request.headers.get("User-Agent", "").startswith("DiscordBot ("):
            return _page(403)
        fault = self._faults[route].pop(0) if self._faults[route] else None
        try:
            if fault is not None and fault.kind != "lose":
                return self._faulty(request, fault)
            result = await self._done(request, path)
        except Refused as refused:
            return self._refused(refused)
        if fault is not None:
            return _break(request)
        if result is None:
            return web.Response(status=204)
        return web.Response(body=msgspec.json.encode(result), content_type="application/json")

    async def _done(self, request: web.Request, path: str) -> object:
        if path == "/gateway/bot":
            limit: Json = {"total": 1000, "remaining": self.starts, "reset_after": 60_000, "max_concurrency": 1}
            return {"url": self.gateway.url, "shards": 1, "session_start_limit": limit}
        body, files = await _parts(request)
        self.bodies.append(body)
        return self.routes.do(request.method, path, query=dict(request.query), body=body, files=files)

    def _refused(self, refused: Refused) -> web.Response:
        self.refusals.append(str(refused))
        body: Json = {"message": str(refused), "code": int(refused.code or 0)}
        return web.json_response(body, status=refused.status)

    def _faulty(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "page":
            return _page(fault.status)
        if fault.kind == "reset":
            return _break(request)
        body: Json = {"message": fault.about, "code": fault.code}
        if fault.status == 429:
            body |= {"retry_after": fault.retry_after, "global": fault.everywhere}
        return web.json_response(body, status=fault.status)

    async def _file(self, request: web.Request) -> web.Response:
        """Files are public to who knows their address: a token is never sent there."""
        found = self.rooms.stored.get(request.match_info["path"])
        if found is None or "Authorization" in request.headers:
            return web.Response(status=404)
        return web.Response(body=found)


def _page(status: int) -> web.Response:
    return web.Response(status=status, text=f"<html><h1>{status}</h1></html>", content_type="text/html")


def _break(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _parts(request: web.Request) -> tuple[object, Files]:
    """The JSON of a call, and its files as (name, bytes)."""
    if request.content_type == "application/json":
        return decode(await request.read()), ()
    if request.content_type != "multipart/form-data":
        if await request.read():
            raise Refused("Expected \"Content-Type\" header to be one of {'application/json'}.", code="50035")
        return None, ()
    form = await request.post()
    files: list[tuple[str, bytes]] = []
    for name, value in form.items():
        if isinstance(value, web.FileField):
            if name != f"files[{len(files)}]":
                raise Refused("Invalid Form Body: files", code="50035")
            files.append((value.filename, value.file.read()))
    said = form.get("payload_json", "")
    if isinstance(said, web.FileField):
        raise Refused("The request body contains invalid JSON.", code="50109")
    return decode(said.encode() if isinstance(said, str) else bytes(said)), tuple(files)
