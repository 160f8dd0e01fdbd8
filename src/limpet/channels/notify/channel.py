"""The channel `notify`: nothing comes in, so there are no events. A chat is the name of a target."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from typing import TYPE_CHECKING

from limpet.channels.fixed import Fixed
from limpet.channels.kinds import Means
from limpet.config.channels import NotifySettings
from limpet.errors import ConfigError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import Desk, Piece, Traits

if TYPE_CHECKING:
    from apprise import NotifyBase

WAIT = 60.0
"""Seconds for a service to take a message."""
_CODE = re.compile(r"error=(\d{3})\b")
_LATER = frozenset((408, 425, 429))
_UNREACHED = re.compile(r"Failed to establish a new connection|NameResolutionError|ConnectTimeoutError")
_LOGGER = "apprise"


def make(account: str, settings: NotifySettings, means: Means) -> NotifyChannel:
    """The channel of `[channels.notify.ACCOUNT]`. Raises `ConfigError` when a target is none."""
    return NotifyChannel(account, settings, means)


class NotifyChannel(Fixed):
    """Some targets."""

    def __init__(self, account: str, settings: NotifySettings, means: Means, *, wait: float = WAIT) -> None:
        where = f"channels.notify.{account}.targets"
        if not settings.targets:
            raise ConfigError(f"{where} is empty.", hint="Name a target: docs/channels/notify.md shows how.")
        self._account = account
        self._title = settings.title
        self._wait = wait
        self._targets = {name: _target(f"{where}.{name}", means.secret(one)) for name, one in settings.targets.items()}
        self._locks = {name: asyncio.Lock() for name in self._targets}

    @property
    def name(self) -> str:
        return "notify"

    @property
    def account(self) -> str:
        return self._account

    @property
    def traits(self) -> Traits:
        # Services count title and text together.
        room = min(one.body_maxlen for one in self._targets.values()) - len(self._title) - 2
        return Traits(limit=max(50, room), needs_link=False)

    async def run(self, desk: Desk) -> None:
        desk.up()
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass

    async def send(self, piece: Piece) -> str:
        target = self._targets.get(piece.address.chat)
        if target is None:
            raise RefusedError(f"there is no target {piece.address.chat!r}")
        if piece.attachments:
            raise RefusedError("notifications carry no files")
        text = piece.body.plain
        if len(text) > self.traits.limit:
            raise RefusedError(f"the message is longer than the {self.traits.limit} characters that are taken")
        async with self._locks[piece.address.chat]:
            try:
                async with asyncio.timeout(self._wait):
                    await asyncio.to_thread(_put, target, text, self._title)
            except TimeoutError:
                raise UnsureError("the service did not answer") from None
        return ""


class _Ear(logging.Handler):
    """Reads along what the library says of a failure on this thread: its answer is only that there was one."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self.code = 0
        self.unreached = False

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != self._thread:
            return
        message = record.getMessage()
        self.unreached |= _UNREACHED.search(message) is not None
        if found := _CODE.search(message):
            self.code = int(found[1])


def _put(target: NotifyBase, text: str, title: str) -> None:
    """Send, on a thread. Raises `NotAcceptedError`, `RefusedError` and `UnsureError`."""
    ear, logger = _Ear(), logging.getLogger(_LOGGER)
    logger.addHandler(ear)
    try:
        done = target.notify(body=text, title=title, body_format="text")
    except TypeError as error:  # what a service says of a message it cannot be asked to send
        raise RefusedError(f"the service cannot send this: {error}") from None
    finally:
        logger.removeHandler(ear)
    if done:
        return
    if ear.unreached and not ear.code:
        raise NotAcceptedError("the service cannot be reached")
    if ear.code in _LATER:
        raise NotAcceptedError(f"the service wants it later (status {ear.code})")
    if 400 <= ear.code < 500:
        raise RefusedError(f"the service refuses it (status {ear.code})")
    raise UnsureError(f"the service failed (status {ear.code})" if ear.code else "the service failed")


def _target(where: str, url: str) -> NotifyBase:
    from apprise import Apprise

    logger = logging.getLogger(_LOGGER)
    logger.propagate = False  # its lines have addresses in them, and those the keys
    logger.setLevel(logging.DEBUG)  # for `_Ear`
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # so have its
    found = Apprise.instantiate(url)  # pyright: ignore[reportUnknownMemberType]
    if found is None:
        raise ConfigError(f"{where} is no address of a service.", hint="docs/channels/notify.md shows the form.")
    return found
