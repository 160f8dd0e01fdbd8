"""Getting in: capabilities, passwords, a nick that is free."""

from __future__ import annotations

import asyncio
import base64
import logging

from limpet.channels.irc.line import Line, folded
from limpet.channels.irc.wire import Wire
from limpet.config.channels import IrcSettings
from limpet.errors import ChannelError, RefusedError

log = logging.getLogger(__name__)

_TAGS = {"account-tag", "message-tags", "server-time"}
_TAKEN = {"433", "436", "437"}
_TRIES = 4
_NO_ENTRY = {"464": "the password of the server is wrong", "465": "we are banned", "432": "the nick is not allowed"}
_NO_LOGIN = {"902", "904", "905", "906"}
_CHUNK = 400
_NICKSERV = 5.0


class Door:
    """What we are called inside: `nick`, `mask` (`nick!user@host`, empty: not told), and `caps` that were granted.

    `settings` has the passwords themselves.
    """

    def __init__(self, wire: Wire, settings: IrcSettings) -> None:
        self._wire = wire
        self._settings = settings
        self._sasl = bool(settings.account_password) and settings.login == "sasl"
        self.nick = settings.nick
        self.mask = ""
        self.caps: set[str] = set()

    async def enter(self) -> None:
        """Until the server has welcomed us. Raises `RefusedError` and `ChannelError`."""
        if self._settings.password:
            self._wire.put("PASS", self._settings.password)
        self._wire.put("CAP", "LS", "302")
        self._wire.put("NICK", self.nick)
        self._wire.put("USER", self.nick, "0", "*", self._settings.realname or self.nick)
        while (line := await self._wire.read()).command != "001":
            self._step(line)
        # We are called by the welcome's first word, and it mostly ends with our full name.
        self.nick = line.param(0) or self.nick
        last = line.param(-1).rpartition(" ")[2]
        self.mask = last if last.startswith(f"{self.nick}!") else ""
        if self._settings.account_password and not self._sasl:
            await self._identify()

    def _step(self, line: Line) -> None:
        if line.command == "PING":
            self._wire.put("PONG", line.param(-1))
        elif line.command == "CAP":
            self._capabilities(line)
        elif line.command == "AUTHENTICATE" and line.param(0) == "+":
            self._authenticate()
        elif line.command == "903":
            self._wire.put("CAP", "END")
        elif line.command in _NO_LOGIN:
            raise RefusedError("The IRC server does not take account and password (SASL).")
        elif line.command in _TAKEN:
            self.nick += "_"
            if len(self.nick) > len(self._settings.nick) + _TRIES:
                raise ChannelError("The nick and those like it are taken.")
            self._wire.put("NICK", self.nick)
        elif line.command in _NO_ENTRY:
            raise RefusedError(f"The IRC server refuses us: {_NO_ENTRY[line.command]}.")
        elif line.command == "ERROR":
            raise ended(line)

    def _capabilities(self, line: Line) -> None:
        kind, listed = line.param(1).upper(), line.param(-1)
        if kind == "LS":
            self.caps |= {one.partition("=")[0] for one in listed.split()}
            if line.param(2) == "*":
                return  # there is more of the list
            if self._sasl and "sasl" not in self.caps:
                raise RefusedError('The IRC server has no SASL; set login = "nickserv".')
            self.caps &= _TAGS | ({"sasl"} if self._sasl else set())
            if self.caps:
                self._wire.put("CAP", "REQ", " ".join(sorted(self.caps)))
                return
        elif kind == "ACK" and self._sasl:
            self._wire.put("AUTHENTICATE", "PLAIN")
            return
        elif kind == "NAK":
            if self._sasl:
                raise RefusedError("The IRC server offers SASL and does not give it.")
            self.caps = set()
        elif kind != "ACK":
            return
        self._wire.put("CAP", "END")

    def _authenticate(self) -> None:
        """SASL PLAIN, in pieces of 400 bytes (https://ircv3.net/specs/extensions/sasl-3.1)."""
        account = self._settings.account
        token = base64.b64encode(f"{account}\0{account}\0{self._settings.account_password}".encode()).decode()
        pieces = [token[at : at + _CHUNK] for at in range(0, len(token), _CHUNK)]
        if len(pieces[-1]) == _CHUNK:
            pieces.append("+")
        for piece in pieces:
            self._wire.put("AUTHENTICATE", piece)

    async def _identify(self) -> None:
        """Tell NickServ who we are, and wait a little for its answer: channels may want it first."""
        self._wire.put("PRIVMSG", "NickServ", f"IDENTIFY {self._settings.account} {self._settings.account_password}")
        try:
            async with asyncio.timeout(_NICKSERV):
                while True:
                    line = await self._wire.read()
                    if line.command == "NOTICE" and folded(line.nick) == "nickserv":
                        return
                    if line.command == "401":
                        raise RefusedError("There is no NickServ on this network.")
                    self._step(line)
        except TimeoutError:
            log.warning("irc: NickServ does not answer")


def ended(line: Line) -> ChannelError:
    """What the server says before it closes; some tell a wrong password only so."""
    about = line.param(-1)
    if "password" in about.lower():
        return RefusedError(f"The IRC server refuses us: {about}")
    return ChannelError(f"The IRC server has closed the connection: {about}")
