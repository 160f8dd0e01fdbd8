"""What the fakes share: a server on loopback that records requests, checks them and plays a script."""

from __future__ import annotations

import asyncio
from typing import Protocol, Self

import msgspec
from aiohttp import web

from limpet.testing.fakes.script import Reply, Rules, Script, Seen
from limpet.testing.fakes.shape import Refused


class Service(Protocol):
    """A provider's side of things: paths, rules and form of its stream."""

    name: str
    path: str
    root: str
    """What a profile's `base_url` ends with."""
    content_type: str
    """Of a streamed answer."""

    def check(self, seen: Seen, rules: Rules) -> None:
        """Raises `Refused` when the request breaks a rule."""
        ...

    def error(self, refused: Refused) -> object:
        """The JSON body of a refusal."""
        ...

    def events(self, reply: Reply, seen: Seen) -> list[bytes]:
        """The events of a streamed reply, each with its blank line."""
        ...

    def ping(self) -> bytes: ...

    def models(self) -> object:
        """What `GET …/models` lists."""
        ...


class FakeServer:
    """`async with FakeServer(service, script) as server`: then `server.base_url` is what a profile takes.

    `requests` is everything it was asked, `refusals` the reasons of all requests that broke a rule.
    """

    def __init__(self, service: Service, script: Script, *, rules: Rules | None = None, port: int = 0) -> None:
        self._service = service
        self._script = script
        self._rules = rules or Rules()
        self._port = port
        self._played = 0
        self._closing = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.requests: list[Seen] = []
        self.refusals: list[str] = []
        self.base_url = ""

    @property
    def key(self) -> str:
        return self._rules.key

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=256 << 20)
        app.router.add_post(self._service.path, self._post)
        app.router.add_get(f"{self._service.root or '/v1'}/models", self._models)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://127.0.0.1:{port}{self._service.root}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response(self._service.models())

    async def _post(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        peer = str(request.transport.get_extra_info("peername")) if request.transport is not None else ""
        path, _, query = request.raw_path.partition("?")
        seen = Seen(path=path, query=query, headers=headers, raw=raw, body=_object(raw), peer=peer)
        self.requests.append(seen)
        try:
            self._service.check(seen, self._rules)
            reply = self._next(seen)
        except Refused as refused:
            self.refusals.append(str(refused))
            return web.json_response(self._service.error(refused), status=refused.status, headers=refused.headers)
        await self._wait(reply.delay)
        if reply.status != 200 or reply.body is not None:
            return _plain(reply)
        return await self._stream(request, reply, seen=seen)

    def _next(self, seen: Seen) -> Reply:
        if callable(self._script):
            return self._script(seen)
        if self._played >= len(self._script):
            raise Refused(f"the script of this fake ends after {len(self._script)} replies")
        self._played += 1
        return self._script[self._played - 1]

    async def _stream(self, request: web.Request, reply: Reply, *, seen: Seen) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": self._service.content_type, **reply.headers})
        await response.prepare(request)
        events = [part.encode("utf-8", "surrogatepass") for part in reply.raw] or self._service.events(reply, seen)
        for at, event in enumerate(events):
            if at == reply.stall_after:
                await self._stall(response, reply)
                return response
            if at == reply.cut_after:
                break
            await self._wait(reply.gap)
            size = reply.split or len(event)
            for start in range(0, len(event), size):
                await response.write(event[start : start + size])
                if reply.split:
                    await asyncio.sleep(0)
        if len(events) <= reply.stall_after:
            await self._stall(response, reply)
        if reply.cut_after >= 0:
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response

    async def _stall(self, response: web.StreamResponse, reply: Reply) -> None:
        while not self._closing.is_set():
            await self._wait(reply.pings or 3600)
            if reply.pings and not self._closing.is_set():
                await response.write(self._service.ping())

    async def _wait(self, seconds: float) -> None:
        """Sleep, but no longer than the server lives."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._closing.wait()
            except TimeoutError:
                pass


def sse(data: object, *, event: str = "") -> bytes:
    """One event of a stream."""
    head = f"event: {event}\n".encode() if event else b""
    text = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    return head + b"data: " + text + b"\n\n"


def _plain(reply: Reply) -> web.Response:
    if isinstance(reply.body, str):
        kind = "text/html" if reply.body.lstrip().startswith("<") else "application/json"
        return web.Response(text=reply.body, status=reply.status, headers=reply.headers, content_type=kind)
    body = msgspec.json.encode(reply.body)
    return web.Response(body=body, status=reply.status, headers=reply.headers, content_type="application/json")


def _object(raw: bytes) -> dict[str, object] | None:
    try:
        return msgspec.json.decode(raw, type=dict[str, object])
    except msgspec.DecodeError:
        return None
