"""The channel `irc`: one nick on one network.

IRC gives messages no id and gives none twice. The event of an arrival is the server's `msgid` tag where it sends one;
elsewhere one is made, and no double is recognised by it. Who speaks is the account he is logged into, where the server
tells it with each message (`account-tag`), else `nick!user@host`, which is as good as the network's care for it.
(`extended-join` is not used: whose nick it is now nobody tells us once he has left the last channel we share.)
"""

from __future__ import annotations

import asyncio
import os
from datetime import datetime

from msgspec import structs

from limpet.channels.fixed import Fixed
from limpet.channels.irc.door import Door
from limpet.channels.irc.line import LONGEST, Line, folded, unstyled
from limpet.channels.irc.session import Patience, Session
from limpet.channels.irc.wire import connect
from limpet.channels.kinds import Means
from limpet.channels.names import addressed, means_all
from limpet.config.channels import IrcSettings
from limpet.errors import ChannelError, ConfigError, NotReadyError, RefusedError, StoreError
from limpet.types.channel import Arrival, Desk, Piece, Traits
from limpet.types.envelope import Address

_PREFIX = len(":") + 30 + len("!") + 11 + len("@") + 64 + len(" ")
"""Bytes that a server puts before a line of ours at most: nick, user, host."""
_LIMIT = LONGEST - _PREFIX - len("PRIVMSG ") - 64 - len(" :\r\n")
_PAUSES = (1.0, 2.0, 5.0, 10.0)
"""Seconds between two tries to store what came in: the server has no second copy of it."""


def make(account: str, settings: IrcSettings, means: Means) -> IrcChannel:
    """The channel of `[channels.irc.ACCOUNT]`. Raises `ConfigError` when it has no server."""
    return IrcChannel(account, settings, means)


class IrcChannel(Fixed):
    def __init__(self, account: str, settings: IrcSettings, means: Means, *, patience: Patience | None = None) -> None:
        if not settings.server:
            raise ConfigError(f"channels.irc.{account}.server is empty")
        if settings.account_password and not settings.account:
            raise ConfigError(f"channels.irc.{account}.account is empty, but it has a password")
        self._account = account
        self._settings = settings
        self._secret = means.secret
        self._patience = patience or Patience()
        self._session: Session | None = None

    @property
    def name(self) -> str:
        return "irc"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        return Traits(markup="irc", limit=_LIMIT, unit="bytes", lines=1, needs_link=True, blocks=True)

    async def run(self, desk: Desk) -> None:
        settings = structs.replace(
            self._settings,
            password=self._reveal(self._settings.password),
            account_password=self._reveal(self._settings.account_password),
        )
        wire = await connect(settings, self._patience.connect)
        try:
            door = Door(wire, settings)
            async with asyncio.timeout(self._patience.register):
                await door.enter()
            await self._work(Session(wire, door, settings, patience=self._patience), desk)
        except TimeoutError:
            raise ChannelError("The IRC server does not let us in.") from None
        finally:
            await wire.close()

    def _reveal(self, value: str) -> str:
        return self._secret(value) if value else ""

    async def _work(self, session: Session, desk: Desk) -> None:
        async def said(line: Line) -> None:
            arrival = self._arrival(line, session)
            if arrival is not None:
                await _store(desk, arrival)

        def flows() -> None:
            self._session = session
            desk.up()

        try:
            await session.listen(said, flows)
        finally:
            self._session = None
            session.lose("The connection to the IRC server was lost.")

    def _arrival(self, line: Line, session: Session) -> Arrival | None:
        target, text = line.param(0), _text(line)
        if not text or not line.nick or folded(line.nick) == folded(session.nick) or "!" not in line.source:
            return None
        grouped = folded(target) != folded(session.nick)
        text, named = addressed(text, session.nick)
        return Arrival(
            Address("irc", self._account, folded(target if grouped else line.nick)),
            line.tags.get("msgid") or f"made-{os.urandom(12).hex()}",
            _sender(line, session),
            text.strip(),
            sender_name=line.nick,
            chat_name=target if grouped else "",
            in_group=grouped,
            mentioned=grouped and named,
            to_all=means_all(text),
            sent=_sent(line),
        )

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        if piece.attachments:
            raise RefusedError("IRC carries no files.")
        if self._session is None:
            raise NotReadyError("not connected")
        if "\n" in piece.body.markup:
            raise RefusedError("A message of IRC is one line.")
        if not piece.address.chat or set(piece.address.chat) & set(" ,:"):
            raise RefusedError(f"{piece.address.chat!r} is nobody on IRC.")
        await self._session.say(piece.address.chat, piece.body.markup)
        return ""


async def _store(desk: Desk, arrival: Arrival) -> None:
    """Hand it over, and hold it until it could be stored: the server will not say it again."""
    tries = 0
    while True:
        try:
            await desk.receive(arrival)
        except StoreError as error:
            desk.down(f"what came in could not be stored: {error}")
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
        else:
            if tries:
                desk.up()
            return


def _text(line: Line) -> str:
    """What was said; of the messages between clients (CTCP) only `/me` is said."""
    text = line.param(1)
    if text.startswith("\x01"):
        kind, _, rest = text.strip("\x01").partition(" ")
        text = f"* {line.nick} {rest}" if kind == "ACTION" else ""
    return unstyled(text).strip()


def _sender(line: Line, session: Session) -> str:
    """An account has neither `!` nor `@`: so nobody can take a name that looks like another one's account."""
    account = line.tags.get("account", "") if session.accounts else ""
    return account if account and not set(account) & set("!@") else folded(line.source)


def _sent(line: Line) -> int:
    try:
        return int(datetime.fromisoformat(line.tags["time"]).timestamp() * 1000)
    except (KeyError, ValueError):
        return 0
