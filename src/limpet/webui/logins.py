"""Who is logged in at the page: browsers by a secret of their own, which ends by itself.

Only the hashes of the secrets are kept, in a file of the home, so that a restart logs nobody out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from limpet.config import page_password
from limpet.config.write import write_atomically
from limpet.gateway import link
from limpet.types.ports import Clock

log = logging.getLogger(__name__)

IDLE = 7 * 86_400_000
LONGEST = 30 * 86_400_000
"""Milliseconds after which a login ends: unused, and at all."""
NOTED_EVERY = 3_600_000
"""Milliseconds between two notes of when a login was used."""
MOST = 50
"""Logins at once; the one that was not used for longest goes."""
LOGINS_FILE = "web-logins.json"


class Login(Struct, frozen=True):
    """`hash` is the SHA-256 of the browser's secret; times are UTC ms."""

    hash: str
    made: int
    used: int


class Logins:
    """The logins of the home `root`; `token` is that of the server. A waiter on `ended` learns of a logout."""

    def __init__(self, root: Path, token: str, *, clock: Clock) -> None:
        self._file = root / LOGINS_FILE
        self._root = root
        self._token = token
        self._clock = clock
        self._since = clock.now()
        self._used_links: dict[str, int] = {}
        self._open = {one.hash: one for one in _read(self._file)}
        self._ends: dict[str, asyncio.Event] = {}

    def take_link(self, text: str) -> bool:
        """Whether a one-time link is good; it is not any more afterwards."""
        now = self._clock.now()
        found = link.read(self._token, text, now=now)
        if found is None or found.made < self._since or found.name in self._used_links:
            return False
        self._used_links = {name: at for name, at in self._used_links.items() if now - at < link.LASTS}
        self._used_links[found.name] = found.made
        return True

    async def is_password(self, text: str) -> bool:
        """Whether it is the owner's password; takes a while on purpose."""
        return await asyncio.to_thread(page_password.matches, self._root, text)

    def open(self) -> str:
        """The secret of a new login."""
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        known = sorted(self._alive(), key=lambda one: one.used)[-(MOST - 1) :]
        self._keep([*known, Login(_hashed(secret), now, now)])
        return secret

    def find(self, secret: str) -> str:
        """The name of the login that a secret belongs to; empty for none."""
        found, now = self._open.get(_hashed(secret)), self._clock.now()
        if found is None or not _lives(found, now):
            return ""
        if now - found.used > NOTED_EVERY:
            self._keep([one if one is not found else structs.replace(one, used=now) for one in self._alive()])
        return found.hash

    def close(self, name: str) -> None:
        """Log out."""
        self._keep([one for one in self._alive() if one.hash != name])
        if (ended := self._ends.pop(name, None)) is not None:
            ended.set()

    async def ended(self, name: str) -> None:
        """Return once a login has ended, by a logout or by itself."""
        event = self._ends.setdefault(name, asyncio.Event())
        while (one := self._open.get(name)) is not None and (left := _left(one, self._clock.now())) > 0:
            try:
                async with asyncio.timeout(min(left / 1000 + 0.1, 3_600)):
                    await event.wait()
            except TimeoutError:
                continue
            return

    def _alive(self) -> list[Login]:
        now = self._clock.now()
        return [one for one in self._open.values() if _lives(one, now)]

    def _keep(self, logins: list[Login]) -> None:
        self._open = {one.hash: one for one in logins}
        write_atomically(self._file, msgspec.json.encode(logins).decode() + "\n")


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _left(one: Login, now: int) -> int:
    return min(one.made + LONGEST, one.used + IDLE) - now


def _lives(one: Login, now: int) -> bool:
    return _left(one, now) > 0


def _read(file: Path) -> list[Login]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[Login])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("nobody is logged in at the page any more: %s cannot be read (%s)", file, error)
        return []
