"""The one owner of HTTP connections to a model service, and the deadlines of a streamed answer.

`aiohttp` is imported at first use: a process that never asks a model does not pay for it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from limpet.errors import CredentialError, ModelError, StalledError, UnreachableError, UpstreamError
from limpet.llm.exchange import Exchange, Tally
from limpet.llm.sse import ServerEvent, SseParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, TraceConfig

LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
_ONE_WRITE = 128 << 10
_MAX_EVENT = 32 << 20
_MAX_ERROR = 64 << 10
_BLANK = b"\xef\xbb\xbf \t\r\n"


class _Late(TimeoutError):
    """Put into a body that waits for its next piece beyond the deadline."""


class Deadlines(Struct, frozen=True):
    """Seconds. `idle` runs between pieces of content: comments, pings and empty deltas are none.

    `finish` is what a server has after its last piece to say the rest (usage, end mark).
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 60.0
    total: float = 600.0
    finish: float = 5.0

    def times(self, factor: float) -> Deadlines:
        """All but `connect` and `finish`, longer by `factor` (5 for servers on one's own machine)."""
        return Deadlines(
            connect=self.connect,
            first_byte=self.first_byte * factor,
            idle=self.idle * factor,
            total=self.total * factor,
            finish=self.finish,
        )


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")


_ALWAYS = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}


class Http:
    """Connections to one model service. Safe to share between requests of one event loop; `close` when done."""

    def __init__(
        self,
        provider: str,
        *,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 (frozen)
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`headers` go with every request, beside those of the wire."""
        self._provider = provider
        self._headers = dict(headers or {})
        self._deadlines = deadlines
        self._session: ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    @asynccontextmanager
    async def post(
        self, url: str, body: Sequence[bytes], *, headers: Mapping[str, str], exchange: Exchange | None = None
    ) -> AsyncGenerator[Answer, None]:
        """Send `body`, given in parts; gives the answer once its headers are there and its status is 200.

        What goes and comes is written down in `exchange`. Raises `UnreachableError`, `StalledError`, or what
        `classify` makes of another status.
        """
        exchange = exchange or Exchange(body, Tally())
        started = asyncio.get_running_loop().time()
        exchange.url, exchange.headers = url, {**_ALWAYS, **headers, **self._headers}
        response = await self._open(exchange)
        exchange.status, exchange.answer_headers = response.status, response.headers
        try:
            if response.status != 200:
                exchange.tally.owed = False
                raise await self._refusal(response, exchange)
            answer = Answer(response, exchange, provider=self._provider, deadlines=self._deadlines, started=started)
            try:
                yield answer
            finally:
                answer.close()
        finally:
            response.close()

    async def _open(self, exchange: Exchange) -> ClientResponse:
        import aiohttp
        from yarl import URL

        limits = self._deadlines
        url, body, tally = exchange.url, exchange.body, exchange.tally
        size = sum(map(len, body))
        sent = dict(exchange.headers)
        if size > _ONE_WRITE:  # never joined: copying a long history costs more than all else here
            sent["Content-Length"] = str(size)
        data = _parts(body) if size > _ONE_WRITE else b"".join(body)
        try:
            async with asyncio.timeout(limits.connect + limits.first_byte):
                return await self._client().post(
                    URL(url, encoded="%" in url),
                    data=data,
                    headers=sent,
                    proxy=_proxy(url),
                    allow_redirects=False,
                    trace_request_ctx=tally,
                )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise self._unreachable(url, error) from error
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise self._unreachable(url, error) from error
        except TimeoutError as error:
            what = f"{_address(url)} sent nothing within {limits.first_byte:g} s"
            raise StalledError(what, provider=self._provider) from error
        except ValueError as error:  # a header that cannot be sent: keys come with line breaks
            hint = "Check the API key: it holds characters that no key has."
            raise CredentialError(f"the request cannot be sent: {error}", provider=self._provider, hint=hint) from error
        except (aiohttp.ClientError, OSError) as error:
            tally.owed = False
            what = f"{_address(url)} closed the connection without an answer ({_words(error)})"
            raise UpstreamError(what, provider=self._provider) from error

    def _client(self) -> ClientSession:
        import aiohttp

        if self._session is None or self._session.closed:
            timeout = aiohttp.ClientTimeout(total=None, connect=self._deadlines.connect)
            self._session = aiohttp.ClientSession(
                timeout=timeout,
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
                read_bufsize=1 << 18,
                max_line_size=1 << 16,
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[_connected()],
            )
        return self._session

    def _unreachable(self, url: str, error: Exception) -> UnreachableError:
        hint = "Check the address (base_url), the network and, behind one, the proxy."
        if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
            hint = "Does it speak https there? Try http:// in the address (base_url), or check its certificate."
        elif is_loopback(url):
            hint = "Is the local server running, and on this port?"
        return UnreachableError(f"cannot reach {_address(url)}: {_words(error)}", provider=self._provider, hint=hint)

    async def _refusal(self, response: ClientResponse, exchange: Exchange) -> ModelError:
        import aiohttp

        from limpet.llm.classify import error_of  # a refusal is rare

        body = b""
        try:
            async with asyncio.timeout(min(10.0, self._deadlines.idle)):
                while len(body) < _MAX_ERROR and (piece := await response.content.readany()):
                    body += piece
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass  # the status says enough
        exchange.received.add(body)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return error_of(response.status, body, headers=headers, provider=self._provider, address=str(response.url))


class Answer:
    """The body of a 200, read under deadlines. The reader says what was content with `progress`."""

    def __init__(
        self, response: ClientResponse, exchange: Exchange, *, provider: str, deadlines: Deadlines, started: float
    ) -> None:
        import aiohttp

        self.tally = exchange.tally
        self._response = response
        self._received = exchange.received
        self._provider = provider
        self._deadlines = deadlines
        self._client_error = aiohttp.ClientError
        self._loop = asyncio.get_running_loop()
        self._end = started + deadlines.total
        self._deadline = min(self._end, self._loop.time() + deadlines.idle)
        self._timer: asyncio.TimerHandle | None = None
        self._finished = False
        self._parser = SseParser()
        self._head: bytes | None = b""

    def progress(self) -> None:
        """A piece of content came: the idle deadline starts anew."""
        if not self._finished:
            self._deadline = min(self._end, self._loop.time() + self._deadlines.idle)

    def finished(self) -> None:
        """The answer is complete but for trailing facts: a cut or a stall no longer harms it."""
        if not self._finished:
            self._finished = True
            self._deadline = min(self._end, self._loop.time() + self._deadlines.finish)
            self.close()  # the timer, which comes later than that

    def close(self) -> None:
        """Nothing is read any more: the timer goes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def events(self) -> list[ServerEvent]:
        """The events that came next, none at the end. A body that is one JSON object instead is given as one event.

        Raises `StalledError`, and `UpstreamError` for a cut connection, for HTML, and for an event over 32 MB.
        """
        while chunk := await self.read():
            if self._head is not None:
                self._head += chunk
                kind = self._head.lstrip(_BLANK)[:1]
                if not kind:
                    continue
                if kind in b"{[<":
                    return [await self._whole(self._head)]
                chunk, self._head = self._head, None
            if events := self._parser.feed(chunk):
                return events
            if self._parser.pending > _MAX_EVENT:
                raise UpstreamError("one event of the answer is over 32 MB", provider=self._provider)
        return self._parser.finish()

    async def drain(self) -> None:
        """After the end mark: give the server a moment to end the body, so that the connection can serve again."""
        import aiohttp

        try:
            async with asyncio.timeout(0.05):
                while not self._response.content.at_eof():
                    await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass  # then the connection is closed

    async def read(self) -> bytes:
        """The bytes that came next, empty at the end. Raises `StalledError`, and `UpstreamError` for a cut connection.

        One timer watches all reads of an answer: it asks at its hour how late it is, and sets itself anew.
        """
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._look)
        try:
            chunk = await self._response.content.readany()
        except _Late as error:
            if self._finished:
                return b""
            raise self._stalled() from error
        except (self._client_error, OSError) as error:
            if self._finished:
                return b""
            what = f"the answer was cut off ({_words(error)})"
            raise UpstreamError(what, provider=self._provider) from error
        # data that is always there never lets a timer fire
        if chunk and self._loop.time() >= self._deadline and not self._finished:
            raise self._stalled()
        self._received.add(chunk)
        return chunk

    def _look(self) -> None:
        """The timer's hour: end the read that waits, or come again when it may be late."""
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look)
        else:
            self._response.content.set_exception(_Late())

    def _stalled(self) -> StalledError:
        limits = self._deadlines
        if self._loop.time() >= self._end:
            return StalledError(f"the answer was not complete after {limits.total:g} s", provider=self._provider)
        return StalledError(f"the answer stalled: no content for {limits.idle:g} s", provider=self._provider)

    async def _whole(self, head: bytes) -> ServerEvent:
        parts, size = [head], len(head)
        while chunk := await self.read():
            parts.append(chunk)
            size += len(chunk)
            if size > _MAX_EVENT:
                raise UpstreamError("the answer is over 32 MB", provider=self._provider)
        body = b"".join(parts).lstrip(_BLANK)
        if body.startswith(b"<"):
            raise UpstreamError(
                f"{_address(str(self._response.url))} answered with HTML instead of JSON",
                provider=self._provider,
                status=200,
                hint="The address (base_url) may be wrong, or a proxy or login page answers in its place.",
            )
        return ServerEvent("", body)


def _connected() -> TraceConfig:
    """Tells the tally of a request that it has a connection: from there on it may cost."""
    import aiohttp

    async def on(_session: ClientSession, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.owed = True

    config = aiohttp.TraceConfig()
    config.on_connection_create_end.append(on)
    config.on_connection_reuseconn.append(on)
    return config


async def _parts(body: Sequence[bytes]) -> AsyncGenerator[bytes, None]:
    for part in body:
        yield part


def _address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for `url`; never one for this machine itself."""
    if is_loopback(url):
        return None
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy_bypass(parts.netloc) else proxy
