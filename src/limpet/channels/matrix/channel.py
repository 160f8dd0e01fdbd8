"""The channel `matrix`: one account.

The event of an arrival is Matrix's `event_id`, also that of an edit. How far we have read (the sync token) is stored
after all of a sync is; what was not comes again. A send is named by a transaction id made of its key, under which the
homeserver drops a second one of the same device.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from limpet.channels.gone import Gone
from limpet.channels.kinds import Means
from limpet.channels.matrix.place import Place
from limpet.config.channels import MatrixSettings
from limpet.errors import ChannelError, ConfigError, NotReadyError, RefusedError, StoreError
from limpet.types.channel import Body, Desk, MenuEntry, Piece, Traits
from limpet.types.envelope import Address, Attachment

if TYPE_CHECKING:
    from limpet.channels.matrix.client import Homeserver, News

log = logging.getLogger(__name__)

_LIMIT = 12_000
"""Bytes of a text: it stands in an event twice, escaped and perhaps encrypted, and an event has at most 65,536."""
_TYPING = 20.0


def make(account: str, settings: MatrixSettings, means: Means) -> MatrixChannel:
    """The channel of `[channels.matrix.ACCOUNT]`. Raises `ConfigError` when it has no account."""
    return MatrixChannel(account, settings, means)


class MatrixChannel:
    def __init__(self, account: str, settings: MatrixSettings, means: Means) -> None:
        if not settings.homeserver or not settings.user or not (settings.password or settings.token):
            raise ConfigError(f"channels.matrix.{account} needs homeserver, user, and password or token")
        self._account = account
        self._settings = settings
        self._means = means
        self._place = Place(means.folder)
        self._token = ""
        self._gone = Gone()
        self._reactions: dict[str, str] = {}
        self._server: Homeserver | None = None

    @property
    def name(self) -> str:
        return "matrix"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        return Traits(
            markup="matrix",
            limit=_LIMIT,
            unit="bytes",
            edit_every=2.0,
            typing=_TYPING,
            reactions=True,
            upload=50_000_000,
            caption=_LIMIT,
            repeatable=True,
        )

    async def run(self, desk: Desk) -> None:
        from limpet.channels.matrix.client import Homeserver

        # What the library logs for its developers has tokens in it.
        logging.getLogger("nio").setLevel(logging.WARNING)
        server = Homeserver(self._settings, self._means.folder)
        try:
            await server.enter(password=self._reveal(self._settings.password), token=self._known_token())
            self._token = server.token
            since, whole = self._place.read(), True
            while True:
                news = await server.sync(since, whole=whole)
                self._server = server
                await self._take(server, news, desk, since=since)
                since, whole = str(news.next_batch), False
                self._place.write(since)
                desk.up()
        except StoreError as error:
            raise ChannelError(f"what came in could not be stored: {error}") from error
        except RefusedError as error:
            if not self._token:
                raise
            self._token = ""  # it may have ended our login: the next try begins with a new one
            raise ChannelError(str(error)) from None
        finally:
            self._server = None
            await server.nio.close()

    def _known_token(self) -> str:
        return self._token or self._reveal(self._settings.token)

    def _reveal(self, value: str) -> str:
        return self._means.secret(value) if value else ""

    async def _take(self, server: Homeserver, news: News, desk: Desk, *, since: str) -> None:
        """Hand over what a sync says. The first one ever only says where we are."""
        from limpet.channels.matrix.reading import arrival, since_we_came

        for room, inviter in server.invitations(news):
            await self._consider(server, room, inviter)
        if not since:
            return
        async for room, events in server.timelines(news, since):
            for event in since_we_came(events, server.user):
                found = await arrival(event, room, server, account=self._account)
                if found is not None:
                    await desk.receive(found)

    async def _consider(self, server: Homeserver, room: str, inviter: str) -> None:
        """Follow an invitation of somebody whose it is to give."""
        known = inviter in (*self._settings.owners, *self._settings.allow)
        if self._settings.invites == "none" or (self._settings.invites == "known" and not known):
            log.info("matrix %s: the invitation of %s to %s is left alone", self._account, inviter, room)
            return
        try:
            await server.join(room)
        except RefusedError as error:
            log.warning("matrix %s: cannot join %s: %s", self._account, room, error)

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        server = self._ready()
        _within(piece.body)
        sent: list[str] = []
        if len(piece.attachments) == 1:
            content = await self._file(server, piece.address.chat, piece.attachments[0])
            if piece.body.markup:
                content |= _words(piece.body)
            parts = [content]
        else:
            parts = [{"msgtype": "m.text", **_words(piece.body)}] if piece.body.markup else []
            parts += [await self._file(server, piece.address.chat, one) for one in piece.attachments]
        for at, content in enumerate(parts):
            related = {**content, **_relation(piece)}
            sent.append(await server.put(piece.address.chat, "m.room.message", related, key=_key(piece.key, str(at))))
        return sent[0] if sent else ""

    async def _file(self, server: Homeserver, room: str, one: Attachment) -> dict[str, object]:
        try:
            path = self._means.blob(one.blob)
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
        family = one.mime.partition("/")[0]
        kind = f"m.{family}" if family in ("image", "audio", "video") else "m.file"
        info: dict[str, object] = {"mimetype": one.mime, "size": one.size}
        named = {"msgtype": kind, "body": one.name, "filename": one.name, "info": info}
        return {**named, **await server.upload(room, one, path)}

    async def edit(self, piece: Piece, message: str) -> None:
        if message in self._gone:
            raise RefusedError("the message was taken away")
        server = self._ready()
        _within(piece.body)
        new = {"msgtype": "m.text", **_words(piece.body)}
        content: dict[str, object] = {
            **new,
            "body": f"* {piece.body.plain}",
            "m.new_content": new,
            "m.relates_to": {"rel_type": "m.replace", "event_id": message},
        }
        key = _key(piece.key, "edit", message, piece.body.markup)
        await server.put(piece.address.chat, "m.room.message", content, key=key)

    async def remove(self, address: Address, message: str) -> None:
        await self._ready().redact(address.chat, message)
        self._gone.add(message)

    async def typing(self, address: Address) -> None:
        await self._ready().typing(address.chat, _TYPING)

    async def react(self, address: Address, message: str, emoji: str) -> None:
        server = self._ready()
        old = self._reactions.pop(message, "")
        if old:
            await server.redact(address.chat, old)
        if emoji:
            relation: dict[str, object] = {"rel_type": "m.annotation", "event_id": message, "key": emoji}
            content: dict[str, object] = {"m.relates_to": relation}
            key = _key("reaction", message, emoji, old)
            self._reactions[message] = await server.put(address.chat, "m.reaction", content, key=key)

    async def offer(self, menu: tuple[MenuEntry, ...]) -> None:
        pass

    def _ready(self) -> Homeserver:
        if self._server is None:
            raise NotReadyError("not connected")
        return self._server


def _within(body: Body) -> None:
    longest = max(len(body.markup.encode()), len(body.plain.encode()))
    if longest > _LIMIT:
        raise RefusedError(f"The message has {longest} bytes, more than {_LIMIT}.")


def _words(body: Body) -> dict[str, object]:
    """The text, in which nobody is mentioned: who is named in it need not be called."""
    return {
        "body": body.plain,
        "format": "org.matrix.custom.html",
        "formatted_body": body.markup,
        "m.mentions": {},
    }


def _relation(piece: Piece) -> dict[str, object]:
    thread, answers = piece.address.thread, piece.reply_to
    if not thread and not answers:
        return {}
    relation: dict[str, object] = {"m.in_reply_to": {"event_id": answers or thread}}
    if thread:
        relation |= {"rel_type": "m.thread", "event_id": thread, "is_falling_back": not answers}
    return {"m.relates_to": relation}


def _key(*parts: str) -> str:
    """A transaction id."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
