"""The one client for what tools fetch: guarded, and bounded in size, time, redirects and decompression.

`aiohttp` is imported at first use. Addresses are checked where the socket is made, so neither a name that changes its
mind between look-up and connection nor a spelling of an address gets round the guard.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from limpet.errors import NetworkRefusedError, ToolError
from limpet.net.guard import Guard

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

AGENT = "Mozilla/5.0 (compatible; Limpet; personal assistant)"
REDIRECTS = 5
_CHUNK = 1 << 16


class Caps(Struct, frozen=True):
    """`bytes` of a body after decompression, `seconds` for all of it."""

    bytes: int = 5_000_000
    seconds: float = 10.0


class Fetched(Struct, frozen=True):
    """An answer. `url` is where the last redirect led; `cut`: the body was longer than the cap."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    cut: bool = False

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Web:
    """Requests of tools to the internet. Safe to share in one event loop; `close` when done."""

    def __init__(self, guard: Guard, *, proxy: str = "") -> None:
        """`proxy`: an http proxy all requests go through; names are then resolved here too, for the guard."""
        self._guard = guard
        self._proxy = proxy
        self._session: ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None, caps: Caps = Caps()) -> Fetched:  # noqa: B008
        """Fetch `url`. Raises `NetworkRefusedError`, and `ToolError` for everything that goes wrong on the way.

        They are `external` once a server has been asked: what it said, or where it redirected to, is in their text.
        """
        return await self._request("GET", url, headers=headers or {}, data=None, caps=caps)

    async def post(
        self,
        url: str,
        data: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        caps: Caps = Caps(),  # noqa: B008
        follow: bool = True,
    ) -> Fetched:
        """Send `data` to `url`; raises as `get` does. Without `follow` a redirect is the answer."""
        return await self._request("POST", url, headers=headers or {}, data=data, caps=caps, follow=follow)

    async def _request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        data: bytes | None,
        caps: Caps,
        follow: bool = True,
    ) -> Fetched:
        asked = url
        moved = (301, 302, 303, 307, 308) if follow else ()
        try:
            async with asyncio.timeout(caps.seconds):
                for _ in range(REDIRECTS + 1):
                    found = await self._once(method, url, headers=headers, data=data, caps=caps)
                    target = found.headers.get("location", "")
                    if found.status not in moved or not target:
                        return found
                    if urlsplit(target := urljoin(url, target)).netloc != urlsplit(url).netloc:
                        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
                    if found.status == 303 or (found.status in (301, 302) and method == "POST"):
                        method, data = "GET", None
                    url = target
        except TimeoutError:
            raise _told(ToolError(f"{url} did not answer completely within {caps.seconds:g} s.")) from None
        except ToolError as error:
            raise (_told(error) if url != asked else error) from None
        raise _told(ToolError(f"{url} redirects more than {REDIRECTS} times."))

    async def _once(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None, caps: Caps
    ) -> Fetched:
        import aiohttp

        await self._check(url)
        sent = {"User-Agent": AGENT, "Accept-Encoding": "gzip, deflate", **headers}
        try:
            async with self._client().request(
                method, url, headers=sent, data=data, proxy=self._proxy or None, allow_redirects=False
            ) as response:
                body, cut = await _read(response, caps.bytes)
                known = {name.lower(): value for name, value in response.headers.items()}
                return Fetched(url=str(response.url), status=response.status, headers=known, body=body, cut=cut)
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, _Refused):
                raise error.os_error.reason from None
            raise ToolError(f"{url} cannot be reached: {error.os_error}.") from None
        except aiohttp.InvalidURL:
            raise ToolError(f"{url!r} is no address.") from None
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            raise _told(ToolError(f"{url} cannot be read: {error}.")) from None

    async def _check(self, url: str) -> None:
        """Refuse by scheme, name and, ahead of the socket, by every address of the name."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise ToolError(f"{url!r} is no address.") from None
        if parts.scheme.lower() not in ("http", "https"):
            raise NetworkRefusedError(f"{url}: only http and https are fetched.")
        if not host:
            raise ToolError(f"{url!r} names no host.")
        self._guard.check_host(host)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ToolError(f"{host} cannot be found: {error}.") from None
        for *_, place in found:
            self._guard.check_address(str(place[0]), host=host)

    def _client(self) -> ClientSession:
        import aiohttp

        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None),
                connector=aiohttp.TCPConnector(
                    limit=16,
                    socket_factory=self._socket,
                    use_dns_cache=False,
                    resolver=aiohttp.ThreadedResolver(),  # the system's, whatever else is installed
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _socket(self, info: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        """The socket for an address, if it may be reached: the last word of the guard."""
        family, kind, protocol, _, place = info
        if not self._proxy:
            try:
                self._guard.check_address(str(place[0]))
            except NetworkRefusedError as error:
                raise _Refused(error) from None
        return socket.socket(family, kind, protocol)


class _Refused(OSError):
    """Carries the guard's word through the connector."""

    def __init__(self, reason: NetworkRefusedError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _told(error: ToolError) -> ToolError:
    """`error` as one that a server has a word in."""
    error.external = True
    return error


async def _read(response: ClientResponse, cap: int) -> tuple[bytes, bool]:
    """The body, decompressed, up to `cap` bytes, and whether there was more."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise _told(ToolError(f"{response.url} answers in an encoding that was not asked for: {encoding[:40]}."))
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding not in ("", "identity") else None
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        body += inflate.decompress(chunk, cap + 1 - len(body)) if inflate else chunk
        if len(body) > cap:
            return bytes(body[:cap]), True
    return bytes(body), False
