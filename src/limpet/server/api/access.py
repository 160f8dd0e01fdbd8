"""Who may use the API: the server's own token, and those of `limpet token`."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from msgspec import Struct

from limpet.server.api.asks import Fault
from limpet.server.guard import Guard
from limpet.store import tokens
from limpet.store.driver import Store
from limpet.store.tokens import SCOPES, Scope
from limpet.types.envelope import Trust
from limpet.types.ports import Clock

OWN = "server"
"""What the server's own token is called."""
NOTED_EVERY = 600_000
"""Milliseconds between two notes of the use of a token."""


class Caller(Struct, frozen=True):
    """Who asks: the program that shows the token `name`. `agent` empty: any of them."""

    name: str
    scopes: tuple[Scope, ...]
    agent: str = ""

    @property
    def trust(self) -> Trust:
        """Whoever may do everything is the owner; any other program is somebody else."""
        return "owner" if "admin" in self.scopes else "peer"

    def check(self, scope: Scope) -> None:
        """Raises `Fault` for what its token does not allow."""
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Fault(403, f"The token {self.name} lacks the scope {scope!r}.", code="insufficient_scope")


class Access:
    """Knows callers by their tokens. Wrong ones count together with those of the rest of the server."""

    def __init__(self, store: Store, guard: Guard, *, token: str, clock: Clock) -> None:
        self._store = store
        self._guard = guard
        self._token = token.encode()
        self._clock = clock

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Raises `Fault` for a request of another site's page."""
        if why := self._guard.is_foreign({name: headers.get(name, "") for name in ("host", "origin")}):
            raise Fault(403, f"Refused: {why}.")

    async def caller(self, headers: Mapping[str, str], peer: str) -> Caller:
        """Raises `Fault`."""
        self.check_place(headers)
        if self._guard.is_locked(peer):
            raise Fault(429, "Too many wrong tokens.", code="too_many_failures", again=60)
        shown = _shown(headers)
        if not shown:
            raise Fault(401, "A token is needed: `Authorization: Bearer TOKEN`, or `x-api-key`.", code="no_token")
        if hmac.compare_digest(shown.encode("utf-8", "replace"), self._token):
            return Caller(OWN, SCOPES)
        now = self._clock.now()
        found = self._store.read(lambda connection: tokens.find(connection, shown, now=now))
        if found is None:
            self._guard.note(peer)
            raise Fault(401, "The token is wrong, or not good any more.", code="invalid_api_key")
        if now - found.used > NOTED_EVERY:
            await self._store.write(lambda connection: tokens.note_use(connection, found, now=now))
        return Caller(found.name, found.scopes, found.agent)


def _shown(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
