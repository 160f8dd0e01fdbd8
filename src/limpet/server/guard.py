"""Who may in: the token, compared in constant time, slower after failures; and no page of another site may reach us."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from limpet.config.server_token import is_loopback
from limpet.types.ports import Clock

MOST_FAILURES = 10
WINDOW = 60.0
"""Wrong tokens of one address in so many seconds, after which it is not even listened to."""
FORGET = 10_000
"""Addresses after which those are forgotten whose failures are over."""


class Failures:
    """Who has shown something wrong of late, by address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, list[float]] = {}

    @property
    def remembered(self) -> int:
        """Addresses that have failed of late."""
        return len(self._failures)

    def is_locked(self, peer: str) -> bool:
        """Whether an address has shown too many wrong tokens of late."""
        now = self._clock.monotonic()
        recent = [at for at in self._failures.get(peer, ()) if now - at < WINDOW]
        if recent:
            self._failures[peer] = recent
        else:
            self._failures.pop(peer, None)
        return len(recent) >= MOST_FAILURES

    def note(self, peer: str) -> None:
        """An address has shown something wrong: a token, a password, a link."""
        if not self.is_locked(peer):
            self._failures.setdefault(peer, []).append(self._clock.monotonic())
        if len(self._failures) > FORGET:
            for one in tuple(self._failures):
                self.is_locked(one)


class Guard(Failures):
    """`token` is what clients have to show; `host` is where the server listens."""

    def __init__(self, token: str, *, host: str, clock: Clock) -> None:
        super().__init__(clock)
        self._token = token.encode()
        self._local = is_loopback(host)

    def admits(self, token: str, peer: str) -> bool:
        """Whether the token is right. A wrong one is remembered."""
        if not self.is_locked(peer) and hmac.compare_digest(token.encode("utf-8", "replace"), self._token):
            return True
        self.note(peer)
        return False

    def is_foreign(self, headers: Mapping[str, str]) -> str:
        """Why a request comes from somewhere it must not (another site's page, a rebound name); empty when it does not.

        Bound to loopback, only names of loopback are served: else a page could have its own name point here.
        """
        host = headers.get("host", "")
        if self._local and not is_loopback(_hostname(host)):
            return f"the host {host[:100]!r} is not this machine"
        return foreign_page(headers)


def foreign_page(headers: Mapping[str, str]) -> str:
    """Why a request is one of another site's page; empty when it is not."""
    origin = headers.get("origin", "")
    return f"pages of {origin[:100]} may not" if origin and _place(origin) != headers.get("host", "") else ""


def _place(origin: str) -> str:
    """Host and port of a page's origin; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
