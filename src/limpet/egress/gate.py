"""The proxy of the browser: every host that the guard lets through, for whoever knows the password of this process.

A browser speaks to proxies over TCP only, so this one listens on loopback, where others of this machine could ask too.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import deque
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe

from limpet.egress.grants import Purse
from limpet.egress.http import LARGEST_HEAD, BadMessageError, Head
from limpet.egress.proxy import Caps, Egress
from limpet.errors import NetworkRefusedError
from limpet.net.guard import Guard

_USER = "limpet"
_KEPT = 20
"""Refusals that are kept until somebody asks."""


class Gate(Egress):
    """`async with Gate(guard) as gate:` serves until the block ends."""

    def __init__(self, guard: Guard, *, caps: Caps = Caps(connections=512)) -> None:  # noqa: B008 (frozen)
        super().__init__((), (), guard=guard, folder=Path("/nowhere"), caps=caps)
        self.user = _USER
        self.password = token_urlsafe(24)
        self.address = ""
        self._refusals: deque[str] = deque(maxlen=_KEPT)

    async def __aenter__(self) -> Gate:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LARGEST_HEAD)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def refusals(self) -> tuple[str, ...]:
        """What was refused since the last call, each once."""
        found = tuple(dict.fromkeys(self._refusals))
        self._refusals.clear()
        return found

    async def check(self, host: str) -> None:
        """Look at a host as a connection to it would be looked at. Raises `NetworkRefusedError`."""
        self._guard.check_host(host)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=2)
        except (OSError, UnicodeError):
            return  # the connection itself will say so
        for *_, place in found:
            self._guard.check_address(str(place[0]), host=host)

    def _check_caller(self, head: Head) -> None:
        known = b64encode(f"{self.user}:{self.password}".encode()).decode()
        said = [value for name, value in head.headers if name.lower() == "proxy-authorization"]
        if len(said) != 1 or not compare_digest(said[0].encode(), f"Basic {known}".encode()):
            raise BadMessageError("this proxy is Limpet's own", status=407)

    def _refused(self, error: NetworkRefusedError) -> None:
        super()._refused(error)
        self._refusals.append(str(error))

    def _admit(self, host: str, port: int) -> Purse:
        if not 0 < port < 65_536:
            raise BadMessageError("the port is none")
        self._guard.check_host(host)
        return Purse([])
