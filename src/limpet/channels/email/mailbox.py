"""A mailbox by IMAP: what is new in it since we last looked, and a wait for more (IDLE, RFC 2177)."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import re
import ssl
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from limpet.channels.kept import store
from limpet.config.channels import EmailSettings
from limpet.errors import ChannelError, RefusedError

_Done = TypeVar("_Done")
ANSWER = 30.0
"""Seconds for the server to answer."""
IDLE = 60.0
"""Seconds of waiting in one go: a mail that comes while a command ends may be told to nobody."""
_NUMBERS = re.compile(rb"[\d ]+")


class Answer(Protocol):
    """What a command ended with; literals of its lines are bytearrays."""

    result: str
    lines: list[bytes | bytearray]


class Wire(Protocol):
    transport: asyncio.BaseTransport | None
    tasks: set[asyncio.Future[object]]


class Imap(Protocol):
    """The client of `aioimaplib`, which comes without types, as far as it is used."""

    protocol: Wire
    tasks: set[asyncio.Future[object]]

    async def wait_hello_from_server(self) -> None: ...
    async def login(self, user: str, password: str) -> Answer: ...
    async def select(self, mailbox: str) -> Answer: ...
    async def uid(self, command: str, *criteria: str) -> Answer: ...
    async def uid_search(self, *criteria: str, charset: str | None) -> Answer: ...
    async def noop(self) -> Answer: ...
    async def idle_start(self, timeout: float) -> asyncio.Future[Answer]: ...
    async def wait_server_push(self, timeout: float) -> list[bytes]: ...
    def idle_done(self) -> None: ...
    def has_capability(self, capability: str) -> bool: ...


class State(Struct, frozen=True):
    """How far we are: the last UID that was taken of the mailbox's `validity`, and the day (RFC 3501) that was."""

    validity: int = 0
    last: int = 0
    day: str = ""


class Mailbox:
    """One connection. `folder` keeps how far we are; before the first start nothing was for us."""

    def __init__(self, settings: EmailSettings, password: str, folder: str, *, wait: float) -> None:
        self._library = importlib.import_module("aioimaplib")
        logging.getLogger("aioimaplib").setLevel(logging.WARNING)  # it logs passwords and mails
        self._settings = settings
        self._password = password
        self._file = Path(folder) / "mailbox.json"
        self._wait = wait
        self._state = State()
        self._moved = False
        self._lost = asyncio.Event()
        self._client: Imap | None = None

    async def open(self, trust: ssl.SSLContext | None) -> None:
        """Connect and select the mailbox. Raises `ChannelError`, and `RefusedError` for a wrong password."""
        one = self._settings
        client: Imap = self._library.IMAP4(one.imap_host, one.imap_port, None, self._wait, self._on_lost, trust)
        self._client = client
        await self._within(client.wait_hello_from_server())
        login = await self._within(client.login(_quoted(one.user or one.address), self._password))
        if login.result != "OK":
            if b"UNAVAILABLE" in _said(login):
                raise ChannelError("the mail server lets nobody in for now")
            raise RefusedError("the mail server does not take this user and password")
        selected = await self._within(client.select(_quoted(one.mailbox)))
        if selected.result != "OK":
            raise RefusedError(f"there is no mailbox {one.mailbox}")
        self._begin(_number(selected, rb"UIDVALIDITY"), _number(selected, rb"UIDNEXT"))

    @property
    def validity(self) -> int:
        return self._state.validity

    def _begin(self, validity: int, following: int) -> None:
        try:
            self._state = msgspec.json.decode(self._file.read_bytes(), type=State)
        except (FileNotFoundError, msgspec.DecodeError):
            self._state = State(validity, max(0, following - 1), _day())
            self._keep()
        self._moved = self._state.validity != validity
        if self._moved:
            # The server has numbered all mails anew: new is what nobody has seen since.
            self._state = State(validity, 0, self._state.day)

    def _keep(self) -> None:
        store(self._file, msgspec.json.encode(self._state))

    async def new(self) -> list[int]:
        """UIDs that were not taken yet, in order."""
        last = self._state.last
        query = ("UNSEEN", "SINCE", self._state.day) if self._moved else ("UID", f"{last + 1}:*")
        answer = await self._ask(self._open.uid_search(*query, charset=None), "list mails")
        found = {int(one) for line in answer.lines if _NUMBERS.fullmatch(line) for one in line.split()}
        return sorted(one for one in found if one > last)

    async def size(self, uid: int) -> int:
        """Bytes of a mail; 0: it is gone."""
        return _number(await self._ask(self._open.uid("fetch", str(uid), "(RFC822.SIZE)"), "tell a size"), rb"SIZE")

    async def fetch(self, uid: int, *, whole: bool) -> bytes:
        """A mail, or its header only; empty: it is gone."""
        what = "(BODY.PEEK[])" if whole else "(BODY.PEEK[HEADER])"
        answer = await self._ask(self._open.uid("fetch", str(uid), what), "give a mail", wait=self._wait * 10)
        return next((bytes(line) for line in answer.lines if isinstance(line, bytearray)), b"")

    async def taken(self, uid: int, *, seen: bool) -> None:
        """Note that a mail was taken; it is shown as read then, when `seen`."""
        if seen:
            await self._ask(self._open.uid("store", str(uid), "+FLAGS.SILENT", r"(\Seen)"), "mark a mail")
        self._state = State(self._state.validity, uid, _day())
        if not self._moved:
            self._keep()

    def caught_up(self) -> None:
        """All that `new` gave was taken."""
        if self._moved:
            self._moved = False
            self._keep()

    async def change(self) -> None:
        """Wait until something may be new."""
        client = self._open
        if not client.has_capability("IDLE"):
            await self._watching(asyncio.sleep(IDLE))
            await self._ask(client.noop(), "answer")
            return
        idle = await self._within(client.idle_start(IDLE))
        try:
            await self._watching(client.wait_server_push(IDLE + self._wait))
        finally:
            if not self._lost.is_set():
                client.idle_done()
        await self._within(idle)

    def _on_lost(self, _error: Exception | None) -> None:
        self._lost.set()

    async def shut(self) -> None:
        """Drop the connection, and what the library still waits for."""
        if self._client is None:
            return
        wire = self._client.protocol
        if wire.transport is not None:
            wire.transport.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._lost.wait()
        left = {*self._client.tasks, *wire.tasks}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1)

    @property
    def _open(self) -> Imap:
        assert self._client is not None
        return self._client

    async def _ask(self, call: Awaitable[Answer], what: str, *, wait: float = 0.0) -> Answer:
        answer = await self._within(call, wait=wait)
        if answer.result != "OK":
            raise ChannelError(f"the mail server does not {what}: {_said(answer).decode('ascii', 'replace')[:200]}")
        return answer

    async def _within(self, call: Awaitable[_Done], *, wait: float = 0.0) -> _Done:
        try:
            async with asyncio.timeout(wait or self._wait):
                return await self._watching(call)
        except TimeoutError:
            raise ChannelError("the mail server does not answer") from None

    async def _watching(self, call: Awaitable[_Done]) -> _Done:
        """The result of `call`; the library does not end what it waits for when the connection is lost."""
        task, lost = asyncio.ensure_future(call), asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ChannelError("the connection to the mail server is lost")
            return task.result()
        except (self._library.AioImapException, OSError, TimeoutError) as error:
            about = str(error) or type(error).__name__
            raise ChannelError(f"the mail server cannot be reached: {about}") from None
        finally:
            lost.cancel()
            task.cancel()
            await asyncio.wait((task, lost))


def _number(answer: Answer, name: bytes) -> int:
    found = re.search(name + rb" (\d+)", _said(answer))
    return int(found[1]) if found else 0


def _said(answer: Answer) -> bytes:
    return b"\n".join(answer.lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _day() -> str:
    """Yesterday, as IMAP writes it: servers in other zones have another day."""
    then = time.gmtime(time.time() - 86_400)
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{then.tm_mday}-{months[then.tm_mon - 1]}-{then.tm_year}"
