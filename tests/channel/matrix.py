from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import aiohttp

from limpet.channels.kinds import Means
from limpet.channels.matrix.channel import MatrixChannel
from limpet.config.channels import MatrixSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import Fault, Place, Say, Shown, Skill
from tests.channel.proxy import Proxy
from tests.channel.synapse import synapse

PASSWORD = "limpet-4410-rock"


class Person:
    """Somebody with a client of his own, as plain requests."""

    def __init__(self, port: int, name: str) -> None:
        self._base = f"http://127.0.0.1:{port}/_matrix/client/v3"
        self.name = f"{name}-{uuid.uuid4().hex[:8]}"
        self.id = f"@{self.name}:localhost"
        self._token = ""
        self._session: aiohttp.ClientSession | None = None

    async def enter(self) -> None:
        self._session = aiohttp.ClientSession()
        auth = {"type": "m.login.dummy"}
        answer = await self.ask("POST", "/register", {"username": self.name, "password": PASSWORD, "auth": auth})
        self._token = answer["access_token"]

    async def leave(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        assert self._session is not None
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        async with self._session.request(method, self._base + path, json=body, headers=headers) as answer:
            found = await answer.json()
            assert answer.status == 200, found
            return found

    async def room(self, *guests: str, **more: object) -> str:
        body = {"invite": list(guests), "preset": "private_chat", **more}
        return (await self.ask("POST", "/createRoom", body))["room_id"]

    async def put(self, room: str, content: dict[str, object], kind: str = "m.room.message") -> str:
        path = f"/rooms/{quote(room)}/send/{kind}/{uuid.uuid4().hex}"
        return (await self.ask("PUT", path, content))["event_id"]

    async def say(self, room: str, text: str) -> str:
        return await self.put(room, {"msgtype": "m.text", "body": text})

    async def state(self, room: str, kind: str, content: object) -> None:
        await self.ask("PUT", f"/rooms/{quote(room)}/state/{kind}", content)

    async def upload(self, data: bytes) -> str:
        assert self._session is not None
        url = self._base.replace("client/v3", "media/v3/upload")
        async with self._session.post(url, data=data, headers={"Authorization": f"Bearer {self._token}"}) as answer:
            return (await answer.json())["content_uri"]

    async def events(self, room: str) -> list[Any]:
        """What stands in a room, the oldest first."""
        return (await self.ask("GET", f"/rooms/{quote(room)}/messages?dir=b&limit=100"))["chunk"][::-1]


class MatrixHarness:
    """Synapse with a proxy before it."""

    skills: frozenset[Skill] = frozenset(
        {"groups", "threads", "mentions", "replies", "files", "edited", "redelivery", "reconnect", "refused", "lost"}
    )
    secrets = (PASSWORD,)

    def __init__(self, folder: Path) -> None:
        port = synapse()
        self.proxy = Proxy(port)
        self.folder = folder / "matrix"
        self.blobs = FolderBlobs(folder / "blobs")
        self.bot = Person(port, "limpet")
        self.people = {name: Person(port, name) for name in ("ann", "bob")}
        self.rooms: dict[str, str] = {}
        self.root = ""

    async def __aenter__(self) -> Self:
        await self.proxy.open()
        for person in (self.bot, *self.people.values()):
            await person.enter()
        ann, bob = self.people["ann"], self.people["bob"]
        self.rooms["direct"] = await ann.room(self.bot.id, is_direct=True)
        self.rooms["group"] = await ann.room(bob.id, name="Friends")
        await bob.ask("POST", f"/join/{quote(self.rooms['group'])}", {})
        self.root = await ann.say(self.rooms["group"], "a thread begins here")
        await ann.ask("POST", f"/rooms/{quote(self.rooms['group'])}/invite", {"user_id": self.bot.id})
        return self

    async def __aexit__(self, *_: object) -> None:
        for person in (self.bot, *self.people.values()):
            await person.leave()
        await self.proxy.shut()

    def settings(self, **more: object) -> MatrixSettings:
        return MatrixSettings(
            homeserver=f"http://127.0.0.1:{self.proxy.port}",
            user=self.bot.id,
            password="env:X",
            owners=(self.people["ann"].id,),
            **more,
        )

    def make(self, settings: MatrixSettings | None = None) -> MatrixChannel:
        means = Means(FakeClock(), str(self.folder), lambda _: PASSWORD, self.blobs.path)
        return MatrixChannel("main", settings or self.settings(), means)

    def address(self, place: Place) -> Address:
        room = self.rooms["direct" if place == "direct" else "group"]
        return Address("matrix", "main", room, self.root if place == "thread" else "")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return self.people[name].id

    async def say(self, say: Say) -> str:
        content: dict[str, object] = {"msgtype": "m.text", "body": say.text}
        relation: dict[str, object] = {}
        person = self.people[say.sender]
        if say.mention:
            content["m.mentions"] = {"user_ids": [self.bot.id]}
        if say.file:
            content |= {"msgtype": "m.file", "filename": say.file[0], "url": await person.upload(say.file[1])}
        if say.place == "thread":
            relation = {"rel_type": "m.thread", "event_id": self.root, "is_falling_back": True}
            relation["m.in_reply_to"] = {"event_id": self.root}
        if say.reply_to:
            relation |= {"m.in_reply_to": {"event_id": say.reply_to}, "is_falling_back": False}
        if say.replaces:
            relation = {"rel_type": "m.replace", "event_id": say.replaces}
            content["m.new_content"] = {"msgtype": "m.text", "body": say.text}
        if relation:
            content["m.relates_to"] = relation
        id = await person.put(self.address(say.place).chat, content)
        return say.replaces or id

    async def waiting(self) -> int:
        since = json.loads((self.folder / "sync.json").read_text())
        rooms = (await self.bot.ask("GET", f"/sync?since={since}&timeout=0")).get("rooms", {}).get("join", {})
        events = [event for room in rooms.values() for event in room["timeline"]["events"]]
        return sum(event["type"] == "m.room.message" and event["sender"] != self.bot.id for event in events)

    async def shown(self, place: Place) -> list[Shown]:
        found: dict[str, Shown] = {}
        for event in await self.people["ann"].events(self.address(place).chat):
            content = event["content"]
            if event["sender"] != self.bot.id or event["type"] != "m.room.message" or "body" not in content:
                continue
            relation = content.get("m.relates_to", {})
            thread = relation.get("event_id", "") if relation.get("rel_type") == "m.thread" else ""
            if relation.get("rel_type") == "m.replace":
                old = relation["event_id"]
                if old in found:
                    found[old] = Shown(old, content["m.new_content"]["body"])
            elif thread == self.address(place).thread:
                answers = relation.get("m.in_reply_to", {}).get("event_id", "")
                files = (content["filename"],) if "url" in content else ()
                answers = "" if relation.get("is_falling_back") else answers
                found[event["event_id"]] = Shown(event["event_id"], content["body"], answers, files=files)
        return list(found.values())

    async def reaction(self, message: str) -> str:
        for event in await self.people["ann"].events(self.rooms["direct"]):
            relation = event["content"].get("m.relates_to", {})
            if event["type"] == "m.reaction" and relation.get("event_id") == message:
                return relation["key"]
        return ""

    async def typed(self, place: Place) -> int:
        rooms = (await self.people["ann"].ask("GET", "/sync?timeout=0"))["rooms"]["join"]
        events = rooms[self.address(place).chat]["ephemeral"]["events"]
        return sum(self.bot.id in one["content"].get("user_ids", ()) for one in events)

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self.blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Fault) -> None:
        if fault == "refused":
            await self._let_speak(100)
        else:
            self.proxy.lose(b"PUT ")

    async def heal(self) -> None:
        self.proxy.find()
        await self._let_speak(0)

    async def _let_speak(self, level: int) -> None:
        ann, room = self.people["ann"], self.rooms["direct"]
        levels = await ann.ask("GET", f"/rooms/{quote(room)}/state/m.room.power_levels")
        await ann.state(room, "m.room.power_levels", {**levels, "events_default": level})

    async def cut(self) -> None:
        await self.proxy.shut()
        await asyncio.sleep(0.1)  # the library tries again at once, and should find nobody
        await self.proxy.open()
