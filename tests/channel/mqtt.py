from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import uuid
from pathlib import Path
from typing import Literal, Self

import aiomqtt
import msgspec

from limpet.channels.kinds import Means
from limpet.channels.mqtt.channel import MqttChannel
from limpet.config.channels import MqttSettings
from limpet.testing.blobs import FolderBlobs
from limpet.testing.clock import FakeClock
from limpet.types.envelope import Address, Attachment
from tests.channel.harness import Fault, Place, Say, Shown, Skill
from tests.channel.servers import Relay, certificate, free_port, program, served

PASSWORD = "barnacle-91"


class Answered(msgspec.Struct):
    id: str = ""
    text: str = ""
    reply_to: str = ""


class Broker:
    """Mosquitto with an account for us and one for each device, which may only use its own topics."""

    def __init__(self, folder: Path, *, encrypted: bool = False) -> None:
        self._program = program("mosquitto", "mosquitto")
        self.ca = certificate(folder) if encrypted else ""
        self._folder = folder
        self._stack = contextlib.AsyncExitStack()
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        users = folder / "users"
        for name in ("limpet", "ann", "bob"):
            new = [] if users.exists() else ["-c"]
            maker = program("mosquitto_passwd", "mosquitto")
            subprocess.run([maker, *new, "-b", str(users), name, PASSWORD], check=True, capture_output=True, timeout=20)
        os.chmod(users, 0o600)
        (folder / "acl").write_text(
            "user limpet\ntopic readwrite limpet/#\n"
            "pattern write limpet/%u/in\npattern read limpet/%u/out\npattern read limpet/status\n"
        )

    async def __aenter__(self) -> Self:
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous false",
            f"password_file {self._folder / 'users'}",
            f"acl_file {self._folder / 'acl'}",
            *([f"certfile {self.ca}", f"keyfile {self._folder / 'key.pem'}"] if self.ca else []),
            *(["user root"] if os.getuid() == 0 else []),
        ]
        config = self._folder / "mosquitto.conf"
        config.write_text("\n".join(lines) + "\n")
        log = self._folder / "log"
        await self._stack.enter_async_context(served(self._program, "-c", str(config), port=self.port, log=log))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def device(self, name: str) -> aiomqtt.Client:
        """A connection of the device `name`."""
        return aiomqtt.Client("127.0.0.1", self.port, username=name, password=PASSWORD)

    async def publish(self, device: str, payload: str | bytes, *, qos: int = 1, retain: bool = False) -> None:
        async with self.device(device) as client:
            await client.publish(f"limpet/{device}/in", payload, qos=qos, retain=retain)


def channel(port: int, folder: Path, *, wait: float = 5.0, **settings: object) -> MqttChannel:
    """The channel as the gateway makes it."""
    one = msgspec.convert(
        {"host": "127.0.0.1", "port": port, "user": "limpet", "password": "env:P", **settings}, MqttSettings
    )
    means = Means(FakeClock(), str(folder / "mqtt"), lambda _: PASSWORD, FolderBlobs(folder / "blobs").path)
    return MqttChannel("main", one, means, wait=wait)


class Line:
    """Reads along: `open` are the numbers of messages that were given to us and not acknowledged."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self._rests: dict[bool, bytes] = {True: b"", False: b""}

    def watch(self, from_server: bool, data: bytes) -> None:
        if data[:1] == b"\x10":  # CONNECT
            self._rests = {True: b"", False: b""}
        rest = self._rests[from_server] + data
        while (packet := _packet(rest)) is not None:
            kind, body, rest = packet
            topic = int.from_bytes(body[:2])
            if from_server and kind & 0xF6 == 0x32:  # PUBLISH with quality 1
                self.open.add(int.from_bytes(body[2 + topic : 4 + topic]))
            elif not from_server and kind == 0x40:  # PUBACK
                self.open.discard(topic)
        self._rests[from_server] = rest


def _packet(data: bytes) -> tuple[int, bytes, bytes] | None:
    """The first packet: its first byte, its body, and what follows it."""
    size = 0
    for at, byte in enumerate(data[1:5]):
        size |= (byte & 0x7F) << 7 * at
        if not byte & 0x80:
            start = at + 2
            return (data[0], data[start : start + size], data[start + size :]) if len(data) >= start + size else None
    return None


class MqttHarness:
    skills: frozenset[Skill] = frozenset(("redelivery", "reconnect", "lost"))
    secrets = (PASSWORD,)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.broker = Broker(folder / "broker")
        self._stack = contextlib.AsyncExitStack()
        self._line = Line()
        self._relay = Relay(self.broker.port, self._line.watch)
        self._seen: list[Answered] = []

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.broker)
        await self._stack.enter_async_context(self._relay)
        device = await self._stack.enter_async_context(self.broker.device("ann"))
        await device.subscribe("limpet/ann/out", qos=1)
        task = asyncio.create_task(self._listen(device))
        self._stack.push_async_callback(self._end, task)
        await asyncio.sleep(0.01)  # its wait for messages is a task of its own
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _listen(self, device: aiomqtt.Client) -> None:
        async for message in device.messages:
            assert isinstance(message.payload, bytes)
            self._seen.append(msgspec.json.decode(message.payload, type=Answered))

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    def make(self) -> MqttChannel:
        return channel(self._relay.port, self._folder, wait=3.0, payload="json")

    def address(self, place: Place) -> Address:
        return Address("mqtt", "main", "ann")

    def sender(self, name: Literal["ann", "bob"]) -> str:
        return name

    async def say(self, say: Say) -> str:
        id = uuid.uuid4().hex
        await self.broker.publish(say.sender, msgspec.json.encode({"id": id, "text": say.text}))
        return id

    async def waiting(self) -> int:
        return len(self._line.open)

    async def shown(self, place: Place) -> list[Shown]:
        await asyncio.sleep(0.05)
        return [Shown(one.id, one.text, reply_to=one.reply_to) for one in self._seen]

    async def reaction(self, message: str) -> str:
        return ""

    async def typed(self, place: Place) -> int:
        return 0

    async def attach(self, name: str, data: bytes) -> Attachment:
        raise NotImplementedError

    async def fail(self, fault: Fault) -> None:
        self._relay.deaf = True

    async def heal(self) -> None:
        self._relay.deaf = False

    async def cut(self) -> None:
        self._relay.cut()
