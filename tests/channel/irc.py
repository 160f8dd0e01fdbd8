from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Literal, Self

from limpet.channels.irc.channel import IrcChannel
from limpet.channels.irc.line import Line, parse, written
from limpet.channels.irc.session import Patience
from limpet.channels.kinds import Means
from limpet.config.channels import IrcSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import Fault, Place, Say, Shown, Skill
from tests.channel.proxy import Proxy
from tests.channel.server import Server, free_port, needed

GROUP = "#friends"
PASSWORD = "open-sesame-9431"
_CONFIGURATION = """
[Global]
Name = irc.test.local
Info = test
Listen = 127.0.0.1
Ports = {port}
Password = {password}
PidFile =
[Limits]
MaxConnectionsIP = 0
PingTimeout = 120
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
"""


class Person:
    """Somebody with a client of his own."""

    def __init__(self, nick: str) -> None:
        self.nick = nick
        self.lines: list[Line] = []
        self._task: asyncio.Task[None] | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def enter(self, port: int, password: str = "") -> None:
        reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._task = asyncio.create_task(self._listen(reader))
        if password:
            self.put("PASS", password)
        self.put("NICK", self.nick)
        self.put("USER", self.nick, "0", "*", self.nick)
        await self.until("001")
        self.put("JOIN", GROUP)
        await self.until("366")

    def put(self, command: str, *params: str) -> None:
        assert self._writer is not None
        self._writer.write(written(command, *params))

    async def until(self, command: str, since: int = 0, text: str = "") -> Line:
        async with asyncio.timeout(20):
            while True:
                for line in self.lines[since:]:
                    if line.command == command and text in " ".join((line.source, *line.params)):
                        return line
                await asyncio.sleep(0.002)

    async def ask(self, command: str, *params: str) -> list[Line]:
        """What the server says to a line."""
        since = len(self.lines)
        self.put(command, *params)
        self.put("PING", f"after-{since}")
        await self.until("PONG", since, f"after-{since}")
        return self.lines[since:]

    async def leave(self) -> None:
        if self._task is not None and self._writer is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while raw := await reader.readline():
            line = parse(raw)
            if line.command == "PING":
                self.put("PONG", line.param(-1))
            self.lines.append(line)


class IrcHarness:
    """ngircd with a proxy before it."""

    skills: frozenset[Skill] = frozenset({"groups", "mentions", "reconnect", "refused", "lost"})
    secrets = (PASSWORD,)

    def __init__(self, folder: Path) -> None:
        port = free_port()
        argv = (needed("ngircd"), "-n", "-f", str(folder / "ngircd.conf"))
        (folder / "ngircd.conf").write_text(_CONFIGURATION.format(port=port, password=PASSWORD))
        self.server = Server(argv, folder=folder, port=port)
        self.proxy = Proxy(port)
        self._folder = folder
        self._blobs = FolderBlobs(folder / "blobs")
        self.people = {"ann": Person("ann"), "bob": Person("bob")}

    async def __aenter__(self) -> Self:
        await self.server.start()
        await self.proxy.open()
        for person in self.people.values():
            await person.enter(self.server.port, PASSWORD)
        return self

    async def __aexit__(self, *_: object) -> None:
        for person in self.people.values():
            await person.leave()
        await self.proxy.shut()
        await self.server.stop()

    def settings(self) -> IrcSettings:
        return IrcSettings(
            server="127.0.0.1",
            port=self.proxy.port,
            tls=False,
            nick="limpet",
            password="env:DOOR",
            join=(GROUP,),
            pause=0.0,
        )

    def make(self, settings: IrcSettings | None = None) -> IrcChannel:
        means = Means(FakeClock(), str(self._folder / "irc"), lambda _: PASSWORD, self._blobs.path)
        return IrcChannel("main", settings or self.settings(), means, patience=Patience(answer=10.0, look=0.05))

    def address(self, place: Place) -> Address:
        return Address("irc", "main", "ann" if place == "direct" else GROUP)

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return f"{name}!~{name}@127.0.0.1"

    async def say(self, say: Say) -> str:
        text = f"limpet: {say.text}" if say.mention else say.text
        target = "limpet" if say.place == "direct" else GROUP
        await self._ready()
        async with asyncio.timeout(20):
            # Who is not there hears nothing: people say it again.
            while any(line.command == "401" for line in await self.people[say.sender].ask("PRIVMSG", target, text)):
                await asyncio.sleep(0.02)
        return ""

    async def waiting(self) -> int:
        return 0

    async def shown(self, place: Place) -> list[Shown]:
        target = "ann" if place == "direct" else GROUP
        return [Shown("", line.param(1)) for line in await self._heard() if line.param(0) == target]

    async def _heard(self) -> list[Line]:
        ann = self.people["ann"]
        await ann.ask("TIME")
        return [line for line in ann.lines if line.command == "PRIVMSG" and line.nick == "limpet"]

    async def reaction(self, message: str) -> str:
        return ""

    async def typed(self, place: Place) -> int:
        return 0

    async def attach(self, name: str, data: bytes) -> Attachment:
        return Attachment(await self._blobs.put(data), name, "text/plain", len(data))

    async def fail(self, fault: Fault) -> None:
        if fault == "refused":
            await self.people["ann"].ask("NICK", "elsewhere")
        else:
            self.proxy.lose(b"PRIVMSG")

    async def heal(self) -> None:
        self.proxy.find()
        await self.people["ann"].ask("NICK", "ann")
        await self._ready()

    async def _ready(self) -> None:
        """The bot is in, and knows it."""
        async with asyncio.timeout(20):
            while b" PONG " not in self.proxy.passed:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)

    async def cut(self) -> None:
        await self.proxy.cut()
