"""At work on a connection: what is said, what the server says to a line of ours, our nick and our channels.

IRC does not answer a message that arrived. But a server does what it is told in order, so a `PING` behind a message is
answered when the message was dealt with, and an error before that answer is about the message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

from msgspec import Struct

from limpet.channels.irc.door import Door, ended
from limpet.channels.irc.line import LONGEST, Line, folded, written
from limpet.channels.irc.wire import Wire
from limpet.config.channels import IrcSettings
from limpet.errors import ChannelError, NotAcceptedError, NotReadyError, RefusedError, UnsureError

log = logging.getLogger(__name__)

_LATER = {"263", "439", "707"}
"""The server wants fewer messages."""
_NEVER = {"401", "403", "404", "407", "411", "412", "413", "414", "415", "417", "477", "489", "492", "531", "716"}
_NOT_JOINED = {"403", "405", "407", "437", "471", "473", "474", "475", "476", "477", "489"}
_PROOF = "limpet"
_QUEUE = 60.0
"""Seconds that a message waits for those before it."""
_LONGEST_MASK = 107
"""Bytes of nick, user and host, where the server has not told ours."""


class Patience(Struct, frozen=True):
    """Seconds: `connect` and `register` for getting in, `answer` for a line of ours, `silence` after which the server
    is asked whether it is there, `look` between two tries to get our nick and channels back."""

    connect: float = 20.0
    register: float = 60.0
    answer: float = 30.0
    silence: float = 60.0
    look: float = 60.0


class Session:
    """A connection on which we are registered."""

    def __init__(self, wire: Wire, door: Door, settings: IrcSettings, *, patience: Patience) -> None:
        self._wire = wire
        self._settings = settings
        self._patience = patience
        self.nick = door.nick
        self.accounts = "account-tag" in door.caps
        self._mask = door.mask
        self._wanted = {folded(one.split()[0]): one for one in settings.join}
        self._missing = set(self._wanted)
        self._sending = asyncio.Lock()
        self._answer: asyncio.Future[None] | None = None
        self._errors: list[Line] = []
        self._count = 0
        self._lost = ""
        self._free_at = self._looked = asyncio.get_running_loop().time()

    async def listen(self, said: Callable[[Line], Awaitable[None]], flows: Callable[[], None]) -> None:
        """Until the connection is lost: raises `ChannelError`. `said` is called with each message, one after the
        other, `flows` at each proof that the connection stands."""
        for one in self._wanted.values():
            self._wire.join(one)
        asked = heard = asyncio.get_running_loop().time()
        self._wire.put("PING", _PROOF)
        while True:
            now = asyncio.get_running_loop().time()
            if now - heard > 2 * self._patience.silence:
                raise ChannelError("The IRC server does not answer.")
            if now - asked >= self._patience.silence:
                asked = now
                self._wire.put("PING", _PROOF)
            self._look(now)
            try:
                async with asyncio.timeout(min(self._patience.silence, self._patience.look)):
                    line = await self._wire.read()
            except TimeoutError:
                continue
            heard = asyncio.get_running_loop().time()
            if line.command == "PRIVMSG":
                await said(line)
            elif line.command == "PONG" and line.param(-1) == _PROOF:
                flows()
            else:
                self._note(line)

    def _look(self, now: float) -> None:
        """Try for our nick and channels again, from time to time."""
        if now - self._looked < self._patience.look:
            return
        self._looked = now
        if self.nick != self._settings.nick:
            self._wire.put("NICK", self._settings.nick)
        for one in self._missing:
            self._wire.join(self._wanted[one])

    def _note(self, line: Line) -> None:
        command, ours = line.command, folded(line.nick) == folded(self.nick)
        if command == "PING":
            self._wire.put("PONG", line.param(-1))
        elif command == "PONG":
            self._answered(line.param(-1))
        elif command == "NICK" and ours:
            self.nick, self._mask = line.param(0), ""
        elif command == "JOIN" and ours:
            self._mask = line.source
            self._missing.discard(folded(line.param(0)))
        elif (command == "PART" and ours) or (command == "KICK" and folded(line.param(1)) == folded(self.nick)):
            log.warning("irc: we are no more in %s: %s", line.param(0), command)
            self._missing |= {folded(line.param(0))} & self._wanted.keys()
        elif command == "ERROR":
            raise ended(line)
        elif self._answer is not None and command in _NEVER | _LATER:
            self._errors.append(line)
        elif command in _NOT_JOINED and folded(line.param(1)) in self._missing:
            log.warning("irc: cannot join %s: %s", line.param(1), line.param(-1))

    async def say(self, target: str, text: str) -> None:
        """One message, and wait for what the server says to it. Raises what a send may raise."""
        data = written("PRIVMSG", target, text)
        size = len(f":{self._mask} ".encode() if self._mask else b":" + b"x" * _LONGEST_MASK + b" ") + len(data)
        if size > LONGEST:
            raise RefusedError(f"The line has {size} bytes, more than the {LONGEST} of IRC.")
        async with self._turn():
            await self._pace()
            if self._lost:
                raise NotReadyError(self._lost)
            self._count += 1
            self._errors = []
            self._answer = asyncio.get_running_loop().create_future()
            try:
                self._wire.raw(data + written("PING", f"{_PROOF}-{self._count}"))
                async with asyncio.timeout(self._patience.answer):
                    await self._answer
            except TimeoutError:
                raise UnsureError("The IRC server did not answer.") from None
            finally:
                self._answer = None
            self._judge(target)

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        """One message at a time. Raises `NotReadyError` when those before take too long."""
        try:
            async with asyncio.timeout(_QUEUE):
                await self._sending.acquire()
        except TimeoutError:
            raise NotReadyError("there is much to be sent") from None
        try:
            yield
        finally:
            self._sending.release()

    def _judge(self, target: str) -> None:
        for error in self._errors:
            about = f"{target}: {error.param(-1)}"
            if error.command in _LATER:
                raise NotAcceptedError(about, retry_after=10.0)
            if folded(target) in self._missing:
                raise NotAcceptedError(about)
            if folded(error.param(1)) == folded(target) or error.command in ("412", "417"):
                raise RefusedError(about)

    def _answered(self, token: str) -> None:
        if self._answer is not None and token == f"{_PROOF}-{self._count}" and not self._answer.done():
            self._answer.set_result(None)

    async def _pace(self) -> None:
        """`burst` messages at once, then one each `pause` seconds (RFC 1459, 8.10)."""
        now, pause = asyncio.get_running_loop().time(), self._settings.pause
        free_at = max(self._free_at, now) + pause
        await asyncio.sleep(max(0.0, free_at - now - self._settings.burst * pause))
        self._free_at = free_at

    def lose(self, why: str) -> None:
        """Nothing comes any more: who waits for an answer will not get it."""
        self._lost = why
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(UnsureError(why))
