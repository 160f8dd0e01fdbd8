"""The channel `xmpp`: one account.

The event of an arrival is its sender's full address with his id of the message (`from#id`), which is the same in each
copy that servers keep. Stanzas are confirmed to the server (XEP-0198) after they are stored. A send is over when the
server has answered something that was sent after it, for it deals with stanzas in order (RFC 6120, 10.1).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec import structs

from limpet.channels.gone import Gone
from limpet.channels.kinds import Means
from limpet.channels.xmpp.rooms import Rooms
from limpet.config.channels import XmppSettings
from limpet.errors import ChannelError, ConfigError, NotReadyError, RefusedError, StoreError, UnsureError
from limpet.types.channel import Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address

if TYPE_CHECKING:
    from slixmpp.stanza import Message

    from limpet.channels.xmpp.client import Stream

_LIMIT = 10_000
_SILENCE = 60.0
"""Seconds after which the server is asked whether it is there."""


def make(account: str, settings: XmppSettings, means: Means) -> XmppChannel:
    """The channel of `[channels.xmpp.ACCOUNT]`. Raises `ConfigError` when it has no account."""
    return XmppChannel(account, settings, means)


class XmppChannel:
    def __init__(self, account: str, settings: XmppSettings, means: Means, *, silence: float = _SILENCE) -> None:
        if "@" not in settings.jid or not settings.password:
            raise ConfigError(f"channels.xmpp.{account} needs jid (name@server) and password")
        self._account = account
        self._settings = structs.replace(settings, rooms=tuple(room.lower() for room in settings.rooms))
        self._means = means
        self._nick = settings.nick or settings.jid.partition("@")[0]
        self._rooms = Rooms(means.folder)
        self._silence = silence
        self._gone = Gone()
        self._stream: Stream | None = None

    @property
    def name(self) -> str:
        return "xmpp"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        return Traits(markup="xmpp", limit=_LIMIT, edit_every=3.0, typing=20.0, upload=100_000_000, caption=_LIMIT)

    async def run(self, desk: Desk) -> None:
        from limpet.channels.xmpp.client import Stream

        # What the library logs for its developers has passwords in it.
        logging.getLogger("slixmpp").setLevel(logging.WARNING)
        stream = Stream(self._settings, self._means.secret(self._settings.password))
        try:
            await stream.enter()
            stream.send_presence()
            for room in self._settings.rooms:
                await self._join(stream, room)
            await stream.prove()
            self._stream = stream
            desk.up()
            await self._listen(stream, desk)
        finally:
            self._stream = None
            await stream.leave()

    async def _join(self, stream: Stream, room: str) -> None:
        await stream.join(room, self._nick, self._rooms)
        if room not in stream.outside and self._rooms.since(room) is None:
            self._rooms.note(room, self._means.clock.now())

    async def _listen(self, stream: Stream, desk: Desk) -> None:
        from limpet.channels.xmpp.reading import arrival

        time = asyncio.get_running_loop().time
        looked = time()
        while True:
            if stream.outside and time() - looked >= self._silence:
                looked = time()
                for room in sorted(stream.outside):
                    await self._join(stream, room)
            try:
                async with asyncio.timeout(self._silence):
                    one = await stream.line.get()
            except TimeoutError:
                await stream.prove()
                desk.up()
                continue
            if one is None:
                raise stream.ended.result()
            if isinstance(one, int):
                stream.confirm(one)
                continue
            found = arrival(one, stream, self._rooms, account=self._account)
            if found is None:
                continue
            try:
                await desk.receive(found)
            except StoreError as error:
                # Not confirmed: the server gives it to the next stream.
                raise ChannelError(f"what came in could not be stored: {error}") from error
            if found.in_group:
                self._rooms.note(found.address.chat, found.sent or self._means.clock.now())

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        stream = self._ready()
        addresses = [await stream.upload(self._blob(one.blob), one.name, one.mime) for one in piece.attachments]
        first = ""
        if piece.body.markup:
            first = await self._put(stream, self._message(stream, piece.address, piece.body.markup))
        for at in addresses:
            message = self._message(stream, piece.address, at)
            message["oob"]["url"] = at
            try:
                id = await self._put(stream, message)
                first = first or id
            except ChannelError as error:
                if not first:
                    raise
                raise UnsureError(f"a part of the message stands there, the rest does not: {error}") from None
        return first

    async def edit(self, piece: Piece, message: str) -> None:
        if message in self._gone:
            raise RefusedError("the message was taken away")
        stream = self._ready()
        changed = self._message(stream, piece.address, piece.body.markup)
        changed["replace"]["id"] = message
        await self._put(stream, changed)

    async def remove(self, address: Address, message: str) -> None:
        stream = self._ready()
        gone = self._message(stream, address, "[taken away]")
        gone["retract"]["id"] = message
        await self._put(stream, gone)
        self._gone.add(message)

    async def typing(self, address: Address) -> None:
        stream = self._ready()
        await self._put(stream, self._message(stream, address, ""))

    async def react(self, address: Address, message: str, emoji: str) -> None:
        raise RefusedError("There are no reactions on this channel.")

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        pass

    def _ready(self) -> Stream:
        if self._stream is None:
            raise NotReadyError("not connected")
        return self._stream

    def _blob(self, blob: str) -> str:
        try:
            return self._means.blob(blob)
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None

    def _message(self, stream: Stream, address: Address, text: str) -> Message:
        if len(text) > _LIMIT:
            raise RefusedError(f"The message has {len(text)} characters, more than {_LIMIT}.")
        return stream.written(address.chat, text, grouped=address.chat in self._settings.rooms)

    async def _put(self, stream: Stream, message: Message) -> str:
        await stream.put(message)
        return str(message["id"])
