"""The door of the page: an ASGI application that lets in who is logged in, and nothing of the page before.

All that the page is made of stands behind it. It says what a browser may do with what it is given (the content policy),
takes no request that another site has made, and loads the page's code when somebody comes in for the first time.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol
from urllib.parse import parse_qs

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from limpet.errors import LimpetError
from limpet.webui import files, login_page, texts
from limpet.webui.logins import LONGEST, Logins

log = logging.getLogger(__name__)

PREFIX = "/web"
MOST = 4_000
"""Bytes of the login form."""
FORBIDDEN = 1008
SAFE = ("GET", "HEAD", "OPTIONS")
ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
POLICY = (
    "default-src 'none'; base-uri 'none'; object-src 'none'; frame-src 'none'; frame-ancestors 'none'; "
    "form-action 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self'; "
    "style-src 'self' {style}; script-src {script}"
)
INLINE = (b"<script>", b'<script type="importmap">', b'<script type="module">')
"""The scripts that NiceGUI writes into its page. What it shows is escaped there, so nothing else reads like these."""


class Keys(Protocol):
    """Called about strangers and tokens; provided by the server's guard."""

    def is_foreign(self, headers: dict[str, str], /) -> str: ...
    def is_locked(self, peer: str, /) -> bool: ...
    def admits(self, token: str, peer: str, /) -> bool: ...
    def note(self, peer: str, /) -> None: ...


class Door:
    """Serves everything below `/web`.

    `load` gives the page or raises `LimpetError`, `has_password` says whether one can log in by it, `file` where a
    stored file lies, by its hash.
    """

    def __init__(
        self,
        keys: Keys,
        logins: Logins,
        load: Callable[[], Awaitable[ASGIApp]],
        *,
        has_password: Callable[[], bool],
        file: Callable[[str], str],
    ) -> None:
        self._keys = keys
        self._logins = logins
        self._load = load
        self._has_password = has_password
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A socket lasts no longer than the login; it has to be opened by a page of ours."""
        asked = HTTPConnection(scope)
        name = self._login(asked)
        if self._keys.is_foreign(_headers(asked)) or not asked.headers.get("origin") or not name:
            await WebSocket(scope, receive, send).close(FORBIDDEN)
            return
        page = await self._load()
        work = asyncio.ensure_future(page(_inner(scope), receive, send))
        ended = asyncio.ensure_future(self._logins.ended(name))
        try:
            await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await send({"type": "websocket.close", "code": FORBIDDEN})
        finally:
            for one in (work, ended):
                one.cancel()
            await asyncio.gather(work, ended, return_exceptions=True)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, nonce = Request(scope, receive), secrets.token_urlsafe(16)
        path = request.url.path.removeprefix(PREFIX)
        told = _Told(send, nonce)
        if why := self._refusal(request):
            await PlainTextResponse(f"Refused: {why}.\n", 403)(scope, receive, told)
        elif path == "/login":
            await (await self._enter(request, nonce))(scope, receive, told)
        elif path.startswith("/login/"):
            await self._by_link(request, path.removeprefix("/login/"))(scope, receive, told)
        elif not (name := self._login(request)):
            await _turned_away(request)(scope, receive, told)
        elif path == "/logout" and request.method == "POST":
            self._logins.close(name)
            await self._out(request)(scope, receive, told)
        elif path.startswith("/files/"):
            called = request.query_params.get("name", "")
            await files.answer(path.removeprefix("/files/"), called, path=self._file)(scope, receive, told)
        else:
            await self._page(scope, receive, told)

    async def _page(self, scope: Scope, receive: Receive, told: _Told) -> None:
        try:
            page = await self._load()
        except LimpetError as error:
            await PlainTextResponse(f"{error.present()}\n", 503)(scope, receive, told)
            return
        await page(_inner(scope), receive, told)

    def _refusal(self, request: Request) -> str:
        if why := self._keys.is_foreign(_headers(request)):
            return why
        if request.method in SAFE:
            return ""
        if not request.headers.get("origin") and request.headers.get("sec-fetch-site") != "same-origin":
            return "it does not say which page it comes from"
        return ""

    def _login(self, asked: HTTPConnection) -> str:
        return self._logins.find(asked.cookies.get(_cookie(asked), ""))

    async def _enter(self, request: Request, nonce: str) -> Response:
        """The form, or what becomes of it. One field takes the token and the password: people need not know which."""
        if request.method != "POST":
            return self._form(nonce)
        peer = request.client.host if request.client else ""
        if self._keys.is_locked(peer):
            return self._form(nonce, texts.LOGIN_LOCKED, 429)
        secret = await _field(request, "secret")
        if secret and await self._logins.is_password(secret):
            return self._in(request)
        if secret and self._keys.admits(secret.strip(), peer):
            return self._in(request)
        return self._form(nonce, texts.LOGIN_WRONG, 403)

    def _form(self, nonce: str, fault: str = "", status: int = 200) -> Response:
        has = self._has_password()
        return HTMLResponse(login_page.page(prefix=PREFIX, nonce=nonce, has_password=has, fault=fault), status)

    def _by_link(self, request: Request, text: str) -> Response:
        peer = request.client.host if request.client else ""
        if self._login(request):
            return RedirectResponse(f"{PREFIX}/", 303)
        if not self._keys.is_locked(peer) and self._logins.take_link(text):
            return self._in(request)
        self._keys.note(peer)
        return PlainTextResponse(texts.LOGIN_LINK_OVER + "\n", 403)

    def _in(self, request: Request) -> Response:
        answer = RedirectResponse(f"{PREFIX}/", 303)
        answer.set_cookie(
            _cookie(request),
            self._logins.open(),
            max_age=LONGEST // 1000,
            path=PREFIX,
            secure=_is_secure(request),
            httponly=True,
            samesite="lax",
        )
        return answer

    def _out(self, request: Request) -> Response:
        answer = RedirectResponse(f"{PREFIX}/login", 303)
        answer.delete_cookie(_cookie(request), path=PREFIX)
        return answer


class _Told:
    """Sends an answer on with what a browser may do with it; a nonce lets NiceGUI's own inline scripts through."""

    def __init__(self, send: Send, nonce: str) -> None:
        self._send = send
        self._nonce = nonce
        self._start: Message | None = None
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in own}
            is_page = any(name == b"x-nicegui-content" for name in names)
            policy = [] if b"content-security-policy" in names else [self._policy(is_page=is_page)]
            message = {**message, "headers": [*_without(own, names), *policy]}
            if is_page:
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            if message.get("more_body"):
                return
            body, start, self._start = self._marked(self._body), self._start, None
            sized = [(name, value) for name, value in start["headers"] if name != b"content-length"]
            await self._send({**start, "headers": [*sized, (b"content-length", str(len(body)).encode())]})
            message = {"type": "http.response.body", "body": body}
        await self._send(message)

    def _policy(self, *, is_page: bool) -> tuple[bytes, bytes]:
        """Only the page itself has scripts. Vue compiles its templates, so they may be made of text (unsafe-eval)."""
        script = f"'self' 'nonce-{self._nonce}' 'unsafe-eval'" if is_page else "'none'"
        style = "'unsafe-inline'" if is_page else f"'nonce-{self._nonce}'"
        return b"content-security-policy", POLICY.format(script=script, style=style).encode()

    def _marked(self, body: bytes) -> bytes:
        nonce = f' nonce="{self._nonce}"'.encode()
        for one in INLINE:
            body = body.replace(one, one[:-1] + nonce + b">")
        return body


def _without(own: Iterable[tuple[bytes, bytes]], names: set[bytes]) -> list[tuple[bytes, bytes]]:
    kept = [*own, *((name, value) for name, value in ALWAYS if name not in names)]
    return kept if b"cache-control" in names else [*kept, (b"cache-control", b"no-store")]


def _turned_away(request: Request) -> Response:
    """Where somebody has to log in first: people are shown the form, programs are told."""
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"{PREFIX}/login", 303)
    return PlainTextResponse("A login is needed.\n", 401)


async def _field(request: Request, name: str) -> str:
    """A field of the form that was sent; empty when it is none, or far too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST:
            return ""
    values = parse_qs(body.decode("utf-8", "replace")).get(name)
    return values[0] if values else ""


def _inner(scope: Scope) -> Scope:
    """The scope as the page gets it: mounted where it thinks it is, and with no prefix that a client may choose."""
    headers = [(name, value) for name, value in scope["headers"] if name != b"x-forwarded-prefix"]
    return {**scope, "root_path": "", "headers": headers}


def _headers(asked: HTTPConnection) -> dict[str, str]:
    return {name: asked.headers.get(name, "") for name in ("host", "origin")}


def _cookie(asked: HTTPConnection) -> str:
    """Cookies are shared by all ports of a host: two gateways on one machine must not log each other out."""
    server = asked.scope.get("server") or ("", 0)
    return f"limpet-{server[1]}"


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"
