"""The server: its routes, and how it runs beside the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import re
import socket
from collections.abc import Callable, Generator, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from limpet.config.server_token import is_loopback
from limpet.errors import UserError
from limpet.server import protocol
from limpet.server.connection import PING, Connection
from limpet.server.guard import Guard
from limpet.server.house import House
from limpet.server.webhooks import Webhooks

log = logging.getLogger(__name__)

FORBIDDEN = 1008
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""All of them: the hooks themselves say which they take."""
BLOB = re.compile(r"[0-9a-f]{64}")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


class Server:
    """Serves `house` on `host` and `port`. `blob` gives the path of a file by its hash, `page` is all below `/web`."""

    def __init__(
        self,
        house: House,
        guard: Guard,
        *,
        blob: Callable[[str], str],
        webhooks: Webhooks | None = None,
        api: Sequence[BaseRoute] = (),
        page: ASGIApp | None = None,
    ) -> None:
        self._house = house
        self._guard = guard
        self._blob = blob
        self.listening = asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                Route("/metrics", self._metrics),
                Route("/protocol.json", self._protocol),
                Route("/files/{blob}", self._file),
                *([Route("/hooks/{name}", webhooks.answer, methods=METHODS)] if webhooks is not None else []),
                *api,
                WebSocketRoute("/ws", self._connect),
                *([Mount("/web", page), Route("/", self._home)] if page is not None else []),
            ]
        )

    async def run(self, host: str, port: int) -> None:
        """Listen until cancelled. Raises `UserError` when it cannot: the port is taken, the host is none of ours."""
        config = uvicorn.Config(
            self.app,
            host=host,
            port=port,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            ws_max_size=protocol.MAX_FRAME,
            ws_ping_interval=PING,
            ws_ping_timeout=PING,
            timeout_graceful_shutdown=1,
        )
        server = _Quiet(config)
        try:
            sockets = await _bound(host, port)  # uvicorn ends the whole process when it cannot
        except OSError as error:
            raise UserError(
                f"The server cannot listen on {host} port {port}: {_reason(error)}.",
                hint="Set gateway.host and gateway.port to others, or gateway.port to 0 for no server.",
            ) from None
        self.listening.set()  # who connects before uvicorn is there waits in the queue of the socket
        task = asyncio.create_task(server.serve(sockets))
        try:
            await asyncio.shield(task)
        finally:
            server.should_exit = True
            await asyncio.wait((task,), timeout=5)

    async def _home(self, request: Request) -> Response:
        return self._refusal(request) or RedirectResponse("/web/", 303, headers=HEADERS)

    async def _healthz(self, request: Request) -> Response:
        return self._refusal(request) or PlainTextResponse("ok\n", headers=HEADERS)

    async def _readyz(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        health = self._house.health()
        body: dict[str, object] = {"ready": health.is_ready}
        if self._unknown(request) is None:
            body["channels"] = health.channels
        return JSONResponse(body, 200 if health.is_ready else 503, headers=HEADERS)

    async def _metrics(self, request: Request) -> Response:
        refusal = self._refusal(request) or self._unknown(request)
        return refusal or PlainTextResponse(self._house.metrics(), headers=HEADERS)

    async def _protocol(self, request: Request) -> Response:
        refusal = self._refusal(request)
        return refusal or Response(protocol.schema(), media_type="application/schema+json", headers=HEADERS)

    async def _file(self, request: Request) -> Response:
        """A file by its hash, always as a download: what it holds is nothing that a browser should run."""
        if refusal := self._refusal(request) or self._unknown(request, even_here=True):
            return refusal
        name = str(request.path_params["blob"])
        try:
            path = self._blob(name) if BLOB.fullmatch(name) else ""
        except FileNotFoundError:
            path = ""
        if not path:
            return PlainTextResponse("There is no such file.\n", 404, headers=HEADERS)
        attached = {**HEADERS, "Content-Disposition": "attachment"}
        return FileResponse(path, media_type="application/octet-stream", headers=attached)

    async def _connect(self, client: WebSocket) -> None:
        if self._guard.is_foreign(_headers(client)) or self._guard.is_locked(_peer(client)):
            await client.close(FORBIDDEN)
            return
        await Connection(client, self._house, self._guard).run()

    def _refusal(self, request: Request) -> Response | None:
        why = self._guard.is_foreign(_headers(request))
        return PlainTextResponse(f"Refused: {why}.\n", 403, headers=HEADERS) if why else None

    def _unknown(self, request: Request, *, even_here: bool = False) -> Response | None:
        """Who shows no token, unless this very machine asks and may without."""
        peer = _peer(request)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token and not even_here and is_loopback(peer):
            return None
        if self._guard.is_locked(peer):
            return PlainTextResponse("Too many wrong tokens.\n", 429, headers={**HEADERS, "Retry-After": "60"})
        if scheme.lower() == "bearer" and self._guard.admits(token.strip(), peer):
            return None
        return PlainTextResponse("A token is needed.\n", 401, headers={**HEADERS, "WWW-Authenticate": "Bearer"})


class _Quiet(uvicorn.Server):
    """Leaves signals to the gateway."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _bound(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of `host` that this machine has. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address[:2]) for family, *_, address in found):
            try:
                sockets.append(socket.create_server(address, family=family))
            except OSError as error:
                if error.errno != errno.EADDRNOTAVAIL or not (sockets or len(found) > 1):
                    raise
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "no such address here")
    except BaseException:
        for one in sockets:
            one.close()
        raise
    return sockets


def _reason(error: OSError) -> str:
    """Without the address, which asyncio puts into it."""
    said = error.strerror or str(error)
    return said.partition(" (while")[0]


def _headers(connection: HTTPConnection) -> dict[str, str]:
    return {name: connection.headers.get(name, "") for name in ("host", "origin")}


def _peer(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client else ""
