"""The fake Bot API as a server on loopback, and the hands of the people who talk to the bot."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import Literal, Self

import msgspec
from aiohttp import web

from limpet.testing.fakes.shape import Refused
from limpet.testing.fakes.telegram.chats import ME, Chats, Fault, Json, Posted, Room, Way
from limpet.testing.fakes.telegram.html import found
from limpet.testing.fakes.telegram.methods import Methods, Params
from limpet.testing.fakes.telegram.rates import Rates

PLAINLY = Way()


class FakeTelegram:
    """`async with FakeTelegram() as telegram`: `base_url` and `token` are what settings take.

    People are 11 (Ann, alone with the bot in chat 11) and 12 (Bob); more rooms come by `group`. `calls` is all that was
    asked: method and parameters; `refusals` all that was refused. `rates` turns the limits of sending on.
    """

    token = "7000000001:AAtest_token-for_the_fake"

    def __init__(self, *, username: str = "helperbot", rates: Rates | None = None, webhook: bool = False) -> None:
        self.chats = Chats(username)
        self.calls: list[tuple[str, Json]] = []
        self.refusals: list[str] = []
        self.updates: list[Json] = []
        self.base_url = ""
        self._methods = Methods(self.chats, rates)
        self._webhook = webhook
        self._faults: defaultdict[str, list[Fault]] = defaultdict(list)
        self._last_update = 99
        self._news = asyncio.Event()
        self._polls = 0
        self._port = 0
        self._runner: web.AppRunner | None = None
        for id, name in ((11, "Ann"), (12, "Bob")):
            self.chats.people[id] = name
            self.chats.rooms[id] = Room(id=id, type="private")

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shut()

    async def open(self) -> None:
        """Listen, on the port of before if there was one."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{path:.*}", self._file)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{self._port}"

    async def shut(self) -> None:
        """Break all connections and refuse new ones."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
            await asyncio.sleep(0.02)  # clients notice

    # What people do and see.

    def group(
        self,
        id: int = -100,
        *,
        kind: Literal["group", "supergroup"] = "supergroup",
        title: str = "Friends",
        topics: tuple[int, ...] = (),
    ) -> Room:
        """A group with everybody in it; with `topics` a forum."""
        room = Room(id=id, type=kind, title=title, forum=bool(topics), topics=set(topics), last=100)
        self.chats.rooms[id] = room
        return room

    def say(self, text: str, *, sender: int = 11, chat: int = 0, way: Way = PLAINLY) -> Posted:
        """`sender` says `text` in `chat` (0: alone with the bot)."""
        room = self.chats.rooms[chat or sender]
        post = Posted(
            id=room.next_id(),
            chat=room.id,
            sender=sender,
            text=text,
            spans=found(text),
            thread=way.thread,
            topic=way.topic,
            reply_to=way.reply_to,
            quote=way.quote,
            album=way.album,
            files=(way.file,) if way.file is not None else (),
            kind=way.kind,
            person=way.person,
            as_chat=way.as_chat,
        )
        room.posts[post.id] = post
        self.give({"message": self.chats.message(post)})
        return post

    def change(self, post: Posted, text: str) -> None:
        """Its sender gives a message another wording."""
        post.text, post.spans, post.edits = text, found(text), post.edits + 1
        self.give({"edited_message": self.chats.message(post)})

    def press(self, post: Posted, says: str, *, sender: int = 11) -> None:
        """Somebody presses the button under `post` that says `says`."""
        if says not in [data for _, data in post.keyboard]:
            raise ValueError(f"no button says {says!r}")
        query = f"query-{self._last_update + 1}"
        self._methods.queries.add(query)
        pressed: Json = {"id": query, "from": self.chats.user(sender), "data": says, "chat_instance": "1"}
        self.give({"callback_query": pressed | {"message": self.chats.message(post)}})

    def migrate(self, chat: int, new: int) -> Room:
        """A group becomes a supergroup of another id."""
        old = self.chats.rooms[chat]
        room = self.group(new, title=old.title)
        old.moved = new
        told: Json = {"message_id": old.next_id(), "chat": self.chats.chat(old), "date": 1, "from": self.chats.user(11)}
        self.give({"message": {**told, "migrate_to_chat_id": new}})
        return room

    def give(self, update: Json) -> int:
        """Put an update into the queue; gives its number."""
        self._last_update += 1
        self.updates.append({"update_id": self._last_update, **update})
        self._news.set()
        return self._last_update

    def ours(self, chat: int, thread: int = 0) -> list[Posted]:
        """The bot's messages that stand in a chat, in order."""
        posts = self.chats.rooms[chat].posts.values()
        return [post for post in posts if post.sender == ME and (post.thread if post.topic else 0) == thread]

    def asked(self, method: str) -> list[Json]:
        """The parameters of all calls of a method."""
        return [params for name, params in self.calls if name == method]

    def fault(self, method: str, *faults: Fault) -> None:
        """The next calls of `method` meet these, in order."""
        self._faults[method] += [fault for fault in faults for _ in range(fault.times)]

    # What the bot asks.

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != self.token:
            known = ":" in request.match_info["token"]
            return self._refused(Refused("Unauthorized", status=401) if known else Refused("Not Found", status=404))
        params = await _params(request)
        self.calls.append((method, params))
        fault = self._faults[method].pop(0) if self._faults[method] else None
        try:
            if fault is not None and fault.kind != "lose":
                return await self._faulty(request, fault)
            result = await self._updates(Params(params)) if method == "getUpdates" else self._methods.do(method, params)
        except Refused as refused:
            return self._refused(refused)
        if fault is not None:
            return _break(request)
        return web.json_response({"ok": True, "result": result}, dumps=_dumps)

    def _refused(self, refused: Refused) -> web.Response:
        self.refusals.append(str(refused))
        body: Json = {"ok": False, "error_code": refused.status, "description": str(refused)}
        if refused.code:
            name = "retry_after" if refused.status == 429 else "migrate_to_chat_id"
            body["parameters"] = {name: int(refused.code)}
        return web.json_response(body, status=refused.status, dumps=_dumps)

    async def _faulty(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.kind == "answer":
            raise Refused(fault.about, status=fault.status, code=str(fault.retry_after or ""))
        if fault.kind == "page":
            page = f"<html><h1>{fault.status}</h1></html>"
            return web.Response(status=fault.status, text=page, content_type="text/html")
        if fault.kind == "hang":
            await asyncio.sleep(fault.seconds)
        return _break(request)

    async def _updates(self, params: Params) -> list[Json]:
        """Confirms what is older than `offset`; a later poll ends one that waits, with 409."""
        if self._webhook:
            about = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            raise Refused(f"Conflict: {about}", status=409)
        offset, limit = params.integer("offset", 0), params.integer("limit", 100)
        self.updates = [one for one in self.updates if int(str(one["update_id"])) >= offset]
        self._polls += 1
        self._news.set()
        mine = self._polls
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(params.integer("timeout", 0)):
                while not self.updates and mine == self._polls:
                    self._news.clear()
                    await self._news.wait()
        if mine != self._polls:
            about = "terminated by other getUpdates request; make sure that only one bot instance is running"
            raise Refused(f"Conflict: {about}", status=409)
        wanted = params.of("allowed_updates", list[str]) or ["message", "edited_message", "callback_query"]
        return [one for one in self.updates if set(one) & set(wanted)][:limit]

    async def _file(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        if request.match_info["token"] != self.token or path not in self.chats.stored:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        return web.Response(body=self.chats.stored[path])


def _dumps(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _break(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _params(request: web.Request) -> Json:
    """The parameters, however they were sent; uploaded files as (name, bytes)."""
    found: Json = dict(request.query)
    if request.content_type == "application/json":
        return found | msgspec.json.decode(await request.read(), type=Json)
    for name, value in (await request.post()).items():
        found[name] = (value.filename, value.file.read()) if isinstance(value, web.FileField) else value
    return found
