"""The channel `mqtt`: devices that publish what they have to say and subscribe to what is answered.

The event of a message is `DEVICE/ID` when its JSON has an `id`. Else a name is made; of such only what the broker
repeats, because it does not know that we have it, is known again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from limpet.channels.fixed import Fixed
from limpet.channels.kinds import Means
from limpet.channels.mqtt.payloads import Names, own_name, read, short, write
from limpet.channels.mqtt.topics import is_device, pattern
from limpet.config.channels import MqttSettings
from limpet.errors import ChannelError, ConfigError, NotReadyError, RefusedError, StoreError
from limpet.types.channel import Arrival, Desk, Piece, Traits
from limpet.types.envelope import Address

if TYPE_CHECKING:
    from limpet.channels.mqtt.client import Client, Given

log = logging.getLogger(__name__)

ANSWER = 10.0
"""Seconds for the broker to answer."""


def make(account: str, settings: MqttSettings, means: Means) -> MqttChannel:
    """The channel of `[channels.mqtt.ACCOUNT]`. Raises `ConfigError` when it names no broker or topics that clash."""
    return MqttChannel(account, settings, means)


class MqttChannel(Fixed):
    """One broker."""

    def __init__(self, account: str, settings: MqttSettings, means: Means, *, wait: float = ANSWER) -> None:
        from limpet.channels.mqtt.client import Access, Client

        where = f"channels.mqtt.{account}"
        if not settings.host:
            raise ConfigError(f"{where}.host is empty.", hint="Name the machine of the broker.")
        self._in = pattern(settings.topic_in, f"{where}.topic_in")
        self._out = pattern(settings.topic_out, f"{where}.topic_out")
        if self._in.meets(self._out) or self._in.device(settings.topic_status):
            raise ConfigError(
                f"{where}: what we say would come in again.", hint="topic_in must differ from the others."
            )
        self._account = account
        self._settings = settings
        self._names = Names(means.folder)
        self._client: Client | None = None

        def connection() -> Client:
            access = Access(
                settings.host,
                settings.port or (8883 if settings.tls else 1883),
                settings.client_id or own_name(means.folder),
                user=settings.user,
                password=means.secret(settings.password) if settings.password else "",
                tls=settings.tls,
                ca=settings.ca,
                status=settings.topic_status,
            )
            return Client(access, wait=wait)

        self._connection = connection

    @property
    def name(self) -> str:
        return "mqtt"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        return Traits(limit=self._settings.limit, unit="bytes")

    async def run(self, desk: Desk) -> None:
        client = self._connection()
        try:
            await client.open(self._in.filter)
            self._client = client
            desk.up()
            async for message in client.given():
                await self._take(client, message, desk)
        except StoreError as error:
            # The broker gives again what was not acknowledged when we come back.
            raise ChannelError(f"what came in could not be stored: {error}") from error
        finally:
            self._client = None
            await client.leave()

    async def _take(self, client: Client, message: Given, desk: Desk) -> None:
        arrival = self._arrival(message)
        if arrival is not None:
            await desk.receive(arrival)
        client.acknowledge(message)
        desk.up()

    def _arrival(self, message: Given) -> Arrival | None:
        device = self._in.device(message.topic)
        if not device or message.retained:
            return None
        said = read(message.payload)
        if said is None:
            log.warning("mqtt %s: %d bytes of %s are left out: no text", self._account, len(message.payload), device)
            return None
        made = "" if said.id else self._names.name(message.number, message.topic, message.payload, again=message.again)
        return Arrival(
            Address("mqtt", self._account, device),
            f"{device}/{said.id}" if said.id else made,
            device,
            said.text,
            message=said.id or made,
            sender_name=device,
            sent=said.sent,
            reply_to=said.reply_to,
        )

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        device, text = piece.address.chat, piece.body.plain
        if not is_device(device):
            raise RefusedError(f"{device!r} cannot be a device: it does not fit into a topic")
        if len(text.encode()) > self._settings.limit:
            raise RefusedError(f"the message is larger than the {self._settings.limit} bytes of `limit`")
        if piece.attachments:
            raise RefusedError("devices are sent no files")
        if self._client is None:
            raise NotReadyError("there is no connection to the broker")
        id = short(piece.key) if self._settings.payload == "json" else ""
        payload = write(text, id=id, reply_to=piece.reply_to) if id else text.encode()
        await self._client.put(self._out.topic(device), payload)
        return id
