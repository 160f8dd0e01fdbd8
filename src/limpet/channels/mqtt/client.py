"""`aiomqtt` with acknowledgement by hand: it has none, the library below it has. Imported when a channel is made."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

import aiomqtt
import paho.mqtt.client as paho
from aiomqtt.exceptions import MqttConnectError
from msgspec import Struct
from paho.mqtt.reasoncodes import ReasonCode

from limpet.errors import ChannelError, NotReadyError, RefusedError, UnsureError

T = TypeVar("T")
_NO_GOOD = frozenset((4, 5, 134, 135))
"""Reasons of a refused connection that stay: user or password, in MQTT 3.1.1 and 5."""
_LEAVING = 2.0
"""Seconds to say goodbye in."""


class Access(Struct, frozen=True):
    """Where the broker is and who we are there. `status` is the topic of our state, empty: none."""

    host: str
    port: int
    identifier: str
    user: str = ""
    password: str = ""
    tls: bool = False
    ca: str = ""
    status: str = ""


class Given(Struct, frozen=True):
    """A message from the broker. `number` is its own for it, `again`: it may have been given before.

    `retained`: it was said before we subscribed.
    """

    topic: str
    payload: bytes
    number: int
    qos: int
    retained: bool = False
    again: bool = False


class _Message(aiomqtt.Message):
    """What the library queues, with what it leaves out."""

    again = False


class Client(aiomqtt.Client):
    """One connection; the broker keeps for our name what it has not been told that we have."""

    def __init__(self, access: Access, *, wait: float) -> None:
        super().__init__(
            access.host,
            access.port,
            username=access.user or None,
            password=access.password or None,
            identifier=access.identifier,
            clean_session=False,
            timeout=wait,
            keepalive=30,
            tls_context=_trusting(access.ca) if access.tls else None,
            will=aiomqtt.Will(access.status, b"offline", qos=1, retain=True) if access.status else None,
        )
        self._client.manual_ack_set(True)
        self._client.connect_timeout = wait
        self._status = access.status

    async def open(self, topics: str) -> None:
        """Connect, subscribe and say that we are here. Raises `ChannelError`, `RefusedError` when it makes no sense."""
        opening = asyncio.ensure_future(self.__aenter__())
        try:
            await asyncio.shield(opening)
            (granted,) = await self.subscribe(topics, qos=1)
            await self.tell("online")
        except asyncio.CancelledError:
            with contextlib.suppress(aiomqtt.MqttError):
                await opening  # it connects in a thread, which cannot be stopped
            raise
        except MqttConnectError as error:
            code = error.rc.value if isinstance(error.rc, ReasonCode) else error.rc
            if code in _NO_GOOD:
                raise RefusedError("the broker does not take this user and password") from None
            raise ChannelError(f"the broker does not let us in: {error}") from None
        except (aiomqtt.MqttError, OSError) as error:
            raise ChannelError(f"the broker cannot be reached: {error}") from None
        if _failed(granted):
            raise RefusedError(f"the broker does not let us read {topics}")

    async def tell(self, state: str) -> None:
        """Put our state where devices can read it at any time."""
        if self._status:
            await self.publish(self._status, state.encode(), qos=1, retain=True)

    async def put(self, topic: str, payload: bytes) -> None:
        """Publish; the broker has it when this returns. Raises `NotReadyError` and `UnsureError`."""
        try:
            await self.publish(topic, payload, qos=1)
        except aiomqtt.MqttCodeError:
            raise NotReadyError("the connection to the broker is lost") from None
        except aiomqtt.MqttError as error:
            raise UnsureError(f"the broker did not say that it has the message: {error}") from None

    async def given(self) -> AsyncIterator[Given]:
        """What comes in, until the connection is lost: raises `ChannelError`."""
        try:
            async for one in self.messages:
                again = isinstance(one, _Message) and one.again
                yield Given(one.topic.value, one.payload, one.mid, one.qos, one.retain, again)
        except aiomqtt.MqttError as error:
            raise ChannelError(f"the connection to the broker is lost: {error.__cause__ or error}") from None

    def acknowledge(self, message: Given) -> None:
        if message.qos:
            self._client.ack(message.number, message.qos)

    async def _wait_for(self, fut: Awaitable[T], timeout: float | None) -> T:
        """As the library's, whose `asyncio.wait_for` swallows a cancellation that comes with the result."""
        limit = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                return await fut
        except TimeoutError:
            raise aiomqtt.MqttError("no answer in time") from None

    async def leave(self) -> None:
        """Say that we are gone and disconnect; whatever state the connection is in, nothing is left of it."""
        if self._connected.done() and not self._connected.exception() and not self._disconnected.done():
            with contextlib.suppress(aiomqtt.MqttError, TimeoutError):
                async with asyncio.timeout(_LEAVING):
                    await self.tell("offline")
            with contextlib.suppress(aiomqtt.MqttError):
                await self.__aexit__(None, None, None)
        await self._hang_up()

    async def _hang_up(self) -> None:
        """The library gives a connection back that stood, but not one that was still being made."""
        self._client.disconnect()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVING):
                while self._client.socket() is not None:
                    await asyncio.sleep(0.01)
        if (left := self._client.socket()) is not None:
            self._loop.remove_reader(left)
            self._loop.remove_writer(left)
            left.close()

    def _on_message(self, client: paho.Client, userdata: object, message: paho.MQTTMessage) -> None:
        payload = bytes(message.payload)
        one = _Message(message.topic, payload, message.qos, retain=message.retain, mid=message.mid, properties=None)
        one.again = message.dup
        self._queue.put_nowait(one)


def _failed(granted: object) -> bool:
    code = granted.value if isinstance(granted, ReasonCode) else granted
    return isinstance(code, int) and code >= 128


class _Socket(ssl.SSLSocket):
    """The library loses a socket whose handshake has failed."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except OSError:
            self.close()
            raise


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise RefusedError(f"the certificates of `ca` cannot be read: {error}") from None
    context.sslsocket_class = _Socket
    return context
