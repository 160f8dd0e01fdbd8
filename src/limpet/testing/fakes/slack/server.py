"""The fake Slack as a server on loopback, and the hands of the people who talk to the bot."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Self

import msgspec
from aiohttp import web

from limpet.testing.fakes.shape import Refused
from limpet.testing.fakes.slack.methods import SCOPES, Methods
from limpet.testing.fakes.slack.rooms import ME, TEAM, Fault, Json, Posted, Room, Rooms, Way
from limpet.testing.fakes.slack.sockets import Sockets

PLAINLY = Way()


class FakeSlack:
    """`async with FakeSlack() as slack`: `base_url`, `bot_token` and `app_token` are what settings take.

    People are U1 (ann, alone with the bot in D1) and U2 (bob, in D2); more rooms come by `room`. `calls` is all that
    was asked (method and parameters), `refusals` all that was refused; `scopes` are those that the bot has.
    """

    bot_token = "xoxb-1-fake-bot-token"
    app_token = "xapp-1-fake-app-token"

    def __init__(self) -> None:
        self.rooms = Rooms()
        self.sockets = Sockets()
        self.scopes: set[str] = set(SCOPES)
        self.calls: list[tuple[str, dict[str, str]]] = []
        self.refusals: list[str] = []
        self.base_url = ""
        self._methods = Methods(self.rooms, scopes=self.scopes)
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._port = 0
        self._runner: web.AppRunner | None = None
        for id in ("D1", "D2"):
            self.rooms.rooms[id] = Room(id=id)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shut()

    async def open(self) -> None:
        """Listen, on the port of before if there was one."""
        app = web.Application(client_max_size=128 << 20)
        app.router.add_get("/socket", self.sockets.serve)
        app.router.add_post("/files-upload/{slot}", self._uploaded)
        app.router.add_get("/files/{path:.*}", self._file)
        app.router.add_post("/api/{method}", self._called)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}/api"
        self.rooms.files = f"http://127.0.0.1:{self._port}/files"

    async def shut(self) -> None:
        """Break all connections and refuse new ones."""
        await self.sockets.cut()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
            await asyncio.sleep(0.02)  # clients notice

    # What people do and see.

    def room(self, id: str, *, name: str = "general", joined: bool = True) -> Room:
        room = Room(id=id, name=name, joined=joined)
        self.rooms.rooms[id] = room
        return room

    async def say(self, text: str, *, sender: str = "U1", room: str = "", way: Way = PLAINLY) -> Posted:
        """`sender` says `text` in `room` (empty: alone with the bot). A mention is told a second time."""
        room = room or f"D{sender[1]}"
        post = Posted(ts=self.rooms.next_ts(), room=room, user=sender, text=text, thread=way.thread, way=way)
        post.files = (way.file,) if way.file is not None else ()
        self.rooms.rooms[room].posts[post.ts] = post
        event = self.rooms.event(post)
        await self.give(event)
        if f"<@{ME}>" in text and not room.startswith("D"):
            await self.give(
                {name: value for name, value in event.items() if name != "channel_type"} | {"type": "app_mention"}
            )
        return post

    async def change(self, post: Posted, text: str) -> None:
        """Its sender gives a message another wording."""
        post.text, post.edited = text, self.rooms.next_ts()
        await self.unfurl(post)  # it is told in the same way

    async def unfurl(self, post: Posted) -> None:
        """Slack has found the preview of a link, and tells the message again."""
        event: Json = {"type": "message", "subtype": "message_changed", "channel": post.room, "hidden": True}
        await self.give(event | {"ts": self.rooms.next_ts(), "message": self.rooms.message(post)})

    async def press(self, post: Posted, says: str, *, sender: str = "U1") -> None:
        """Somebody presses the button under `post` that says `says`."""
        if says not in [value for _, value in post.buttons]:
            raise ValueError(f"no button says {says!r}")
        at = self.rooms.next_ts()
        action: Json = {"type": "button", "action_id": "choice0", "value": says, "action_ts": at}
        payload: Json = {"type": "block_actions", "user": {"id": sender, "name": self.rooms.people[sender]}}
        payload |= {"team": {"id": TEAM, "domain": "t"}, "channel": {"id": post.room, "name": "general"}}
        payload |= {"message": self.rooms.message(post), "actions": [action], "trigger_id": f"trigger{at}"}
        await self.sockets.give("interactive", payload)

    async def command(self, command: str, text: str = "", *, sender: str = "U1", room: str = "") -> None:
        """Somebody uses a slash command that the app has in its settings."""
        payload: Json = {"command": command, "text": text, "user_id": sender, "user_name": self.rooms.people[sender]}
        payload |= {"channel_id": room or f"D{sender[1]}", "channel_name": "general", "team_id": TEAM}
        await self.sockets.give("slash_commands", payload | {"trigger_id": f"trigger{self.rooms.next_ts()}"})

    async def give(self, event: Json) -> None:
        """Any event at all."""
        payload: Json = {
            "type": "event_callback",
            "team_id": TEAM,
            "event": event,
            "event_id": f"Ev{self.rooms.next_ts()}",
        }
        await self.sockets.give("events_api", payload | {"authorizations": [{"user_id": ME, "is_bot": True}]})

    def ours(self, room: str, thread: str = "") -> list[Posted]:
        """The bot's messages that stand in a conversation or thread, in order."""
        posts = self.rooms.rooms[room].posts.values()
        return [post for post in posts if post.user == ME and post.thread == thread]

    def fault(self, method: str, *faults: Fault) -> None:
        """The next calls of `method` meet these, in order."""
        self._faults[method] += [fault for fault in faults for _ in range(fault.times)]

    # What the bot asks.

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        self.calls.append((method, params))
        fault = self._faults[method].pop(0) if self._faults[method] else None
        try:
            if request.content_type != "application/x-www-form-urlencoded":
                raise Refused("invalid_post_type")
            self._check_token(request, method)
            if fault is not None and fault.kind != "lose":
                return _faulty(request, fault)
            result = await self._done(method, params)
        except Refused as refused:
            return self._refused(str(refused), needed=refused.code)
        if fault is not None:
            return _break(request)
        return web.json_response({"ok": True, **result})

    def _check_token(self, request: web.Request, method: str) -> None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in (self.bot_token, self.app_token):
            raise Refused("invalid_auth")
        if (token == self.app_token) != (method == "apps.connections.open"):
            raise Refused("not_allowed_token_type")

    async def _done(self, method: str, params: dict[str, str]) -> Json:
        if method == "apps.connections.open":
            return {"url": f"ws://127.0.0.1:{self._port}/socket?ticket={self.sockets.ticket()}"}
        result = self._methods.do(method, params)
        events, self._methods.events[:] = list(self._methods.events), []
        for event in events:
            await self.give(event)
        return result

    def _refused(self, error: str, *, needed: str = "") -> web.Response:
        self.refusals.append(error)
        body: Json = {"ok": False, "error": error}
        return web.json_response(body | ({"needed": needed, "provided": ""} if needed else {}))

    async def _uploaded(self, request: web.Request) -> web.Response:
        """Files go to an address that says itself that they may: a token is never sent there."""
        if "Authorization" in request.headers:
            return web.Response(status=400)
        self._methods.lay(request.match_info["slot"], await request.read())
        return web.Response(text="OK")

    async def _file(self, request: web.Request) -> web.Response:
        """Without the token or its scope a page to log in is shown."""
        allowed = request.headers.get("Authorization") == f"Bearer {self.bot_token}" and "files:read" in self.scopes
        if not allowed:
            return web.Response(text="<html>log in</html>", content_type="text/html")
        found = self.rooms.stored.get(request.match_info["path"])
        return web.Response(body=found) if found is not None else web.Response(status=404)


def _break(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _faulty(request: web.Request, fault: Fault) -> web.StreamResponse:
    if fault.kind == "reset":
        return _break(request)
    if fault.kind == "page":
        return web.Response(status=fault.status, text="<html></html>", content_type="text/html")
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    body = msgspec.json.encode({"ok": False, "error": fault.error})
    return web.Response(status=fault.status, body=body, content_type="application/json", headers=headers)
