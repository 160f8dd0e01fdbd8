from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Literal, Self

import slixmpp

from limpet.channels.kinds import Means
from limpet.channels.xmpp.channel import XmppChannel
from limpet.config.channels import XmppSettings
from limpet.testing.blobs import FolderBlobs
from limpet.types.clock import SystemClock
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import Fault, Place, Say, Shown, Skill
from tests.channel.proxy import Proxy
from tests.channel.server import Server, free_port, needed

ROOM = "friends@rooms.localhost"
PASSWORDS = {"ann": "pw-ann", "bob": "pw-bob", "limpet": "barnacle-5518"}
_CONFIGURATION = """
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
run_as_root = true
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
http_ports = {{ {http} }}
s2s_ports = {{}}
https_ports = {{}}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "smacks", "blocklist", "offline" }}
modules_disabled = {{ "s2s", "tls" }}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
storage = "internal"
log = {{ debug = "*console" }}
VirtualHost "localhost"
Component "rooms.localhost" "muc"
    modules_enabled = {{ "muc_mam" }}
    muc_room_locking = false
    muc_room_default_public_jids = true
    muc_log_by_default = true
Component "files.localhost" "http_file_share"
    http_host = "127.0.0.1"
    http_external_url = "http://127.0.0.1:{http}/"
"""


class Person(slixmpp.ClientXMPP):
    """Somebody with a client of his own."""

    def __init__(self, name: str) -> None:
        plain = {"feature_mechanisms": {"unencrypted_scram": True, "unencrypted_plain": True}}
        super().__init__(f"{name}@localhost/home", PASSWORDS[name], plugin_config=plain)
        self.enable_direct_tls = self.enable_starttls = False
        self.enable_plaintext = True
        for plugin in ("xep_0045", "xep_0066", "xep_0085", "xep_0199", "xep_0203", "xep_0308", "xep_0424", "xep_0191"):
            self.register_plugin(plugin)
        self.name = name
        self.heard: list[slixmpp.Message] = []
        self.begun = asyncio.Event()
        self.add_event_handler("session_start", lambda _: self.begun.set())
        self.composing = 0
        self.add_event_handler("message", self.heard.append)
        self.add_event_handler("chatstate_composing", self._sees_typing)

    def _sees_typing(self, _: slixmpp.Message) -> None:
        self.composing += 1

    async def enter(self, port: int) -> None:
        self.connect("127.0.0.1", port)
        async with asyncio.timeout(30):
            await self.begun.wait()
        self.send_presence()
        await self.plugin["xep_0045"].join_muc_wait(slixmpp.JID(ROOM), self.name, timeout=20)
        await self.settled()

    def say(self, to: str, text: str, *, kind: str = "chat", replaces: str = "") -> str:
        message = self.make_message(slixmpp.JID(to), mbody=text, mtype=kind)
        message["id"] = self.new_id()
        if replaces:
            message["replace"]["id"] = replaces
        message.send()
        return str(message["id"])

    async def settled(self) -> None:
        """The server has dealt with all that we said, and we have heard what it had for us."""
        await self.plugin["xep_0199"].send_ping(slixmpp.JID("localhost"), timeout=20)

    async def leave(self) -> None:
        self.cancel_connection_attempt()
        if self.transport is not None:
            gone = self.disconnected
            self.abort()
            await asyncio.wait({gone}, timeout=2)
        if self._run_out_filters is not None:
            self._run_out_filters.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._run_out_filters


class XmppHarness:
    """prosody with a proxy before it."""

    skills: frozenset[Skill] = frozenset({"groups", "mentions", "edited", "redelivery", "reconnect", "refused", "lost"})
    secrets = (PASSWORDS["limpet"],)

    def __init__(self, folder: Path) -> None:
        port, http = free_port(), free_port()
        accounts = folder / "data" / "localhost" / "accounts"
        accounts.mkdir(parents=True)
        for name, password in PASSWORDS.items():
            (accounts / f"{name}.dat").write_text(f'return {{ ["password"] = "{password}"; }};')
        (folder / "prosody.cfg.lua").write_text(_CONFIGURATION.format(folder=folder, port=port, http=http))
        argv = (needed("prosody"), "--root", "--config", str(folder / "prosody.cfg.lua"), "-F")
        self.server = Server(argv, folder=folder, port=port)
        self.proxy = Proxy(port)
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")
        self.people: dict[str, Person] = {}

    async def __aenter__(self) -> Self:
        await self.server.start()
        await self.proxy.open()
        self.people = {name: Person(name) for name in ("ann", "bob")}
        for person in self.people.values():
            await person.enter(self.server.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        for person in self.people.values():
            await person.leave()
        await self.proxy.shut()
        await self.server.stop()

    def settings(self) -> XmppSettings:
        return XmppSettings(
            jid="limpet@localhost", password="env:X", host="127.0.0.1", port=self.proxy.port, tls=False, rooms=(ROOM,)
        )

    def make(self, settings: XmppSettings | None = None) -> XmppChannel:
        means = Means(SystemClock(), str(self._folder / "xmpp"), lambda _: PASSWORDS["limpet"], self._blobs.path)
        return XmppChannel("main", settings or self.settings(), means)

    def address(self, place: Place) -> Address:
        return Address("xmpp", "main", "ann@localhost" if place == "direct" else ROOM)

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return f"{name}@localhost"

    async def say(self, say: Say) -> str:
        text = f"limpet: {say.text}" if say.mention else say.text
        person = self.people[say.sender]
        replaces = say.replaces.rpartition("#")[2]
        if say.place == "direct":
            return f"{person.boundjid}#{person.say('limpet@localhost', text, replaces=replaces)}"
        return f"{ROOM}/{say.sender}#{person.say(ROOM, text, kind='groupchat', replaces=replaces)}"

    async def waiting(self) -> int:
        """The server asks after each message whether we have it."""
        return self.proxy.passed.count(b"<r xmlns='urn:xmpp:sm:3'/>") - self.proxy.said.count(b"<a ")

    async def shown(self, place: Place) -> list[Shown]:
        ann = self.people["ann"]
        await ann.settled()
        found: dict[str, Shown] = {}
        sender = "limpet@localhost" if place == "direct" else ROOM
        for one in ann.heard:
            if one["from"].bare != sender or one["type"] == "error":
                continue
            if one.get_plugin("retract", check=True) is not None:
                found.pop(one["retract"]["id"], None)
            elif one.get_plugin("replace", check=True) is not None:
                found[one["replace"]["id"]] = Shown(one["replace"]["id"], one["body"])
            elif one["body"]:
                at = one["oob"]["url"] if one.get_plugin("oob", check=True) is not None else ""
                files = (at.rpartition("/")[2],) if at else ()
                found[one["id"]] = Shown(one["id"], one["body"], files=files)
        return list(found.values())

    async def reaction(self, message: str) -> str:
        return ""

    async def typed(self, place: Place) -> int:
        ann = self.people["ann"]
        await ann.settled()
        return ann.composing

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Fault) -> None:
        if fault == "refused":
            await self.people["ann"].plugin["xep_0191"].block(slixmpp.JID("limpet@localhost"))
        else:
            self.proxy.lose(b"<message")

    async def heal(self) -> None:
        self.proxy.find()
        await self.people["ann"].plugin["xep_0191"].unblock(slixmpp.JID("limpet@localhost"))
        async with asyncio.timeout(20):
            while b"proof-" not in self.proxy.passed:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)

    async def cut(self) -> None:
        async with asyncio.timeout(20):
            # What we have not confirmed, and were not even asked about, would come again.
            while await self.waiting() or self.proxy.passed.rfind(b"<r ") < self.proxy.passed.rfind(b"<message"):
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        await self.proxy.cut()
