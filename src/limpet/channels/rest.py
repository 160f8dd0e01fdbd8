"""HTTP and WebSockets for platforms that are spoken to directly: each failure says whether the request took effect.

Nothing that addresses, headers or answers hold gets into errors: tokens may stand there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from limpet.errors import ChannelError, InputError, NotAcceptedError, RefusedError, UnsureError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientWebSocketResponse, FormData

_CONNECT = 10.0
"""Seconds for a connection to stand."""
ANSWER = 30.0
"""Seconds for an answer; those to uploads and whole downloads may take ten times as long."""
_LARGEST_FRAME = 32 << 20


class Reply(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    raw: bytes


class Rest:
    """The connections of one channel to `platform`, made at first use. `proxy` is that of an HTTP proxy."""

    def __init__(self, platform: str, *, proxy: str = "") -> None:
        self._platform = platform
        self._proxy = proxy or None
        self._session: ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        data: bytes | FormData | None = None,
        wait: float = ANSWER,
    ) -> Reply:
        """The answer, in at most `wait` seconds. Raises `NotAcceptedError`, `RefusedError` and `UnsureError`."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=wait, sock_connect=_CONNECT)
        try:
            async with self._open().request(
                method, url, data=data, headers=headers, timeout=timeout, proxy=self._proxy, allow_redirects=False
            ) as response:
                return Reply(response.status, dict(response.headers), await response.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as error:
            raise NotAcceptedError(f"{self._platform} cannot be reached: {type(error).__name__}") from None
        except aiohttp.InvalidURL:
            raise RefusedError(f"the address of {self._platform} is no address") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnsureError(f"{self._platform} did not answer: {type(error).__name__}") from None

    async def download(self, url: str, limit: int, *, headers: Mapping[str, str], mime: str = "") -> bytes:
        """The bytes behind `url`. Raises `InputError` above `limit` and `ChannelError`.

        Where a file of `mime` is asked for, a page of HTML is a login and no file.
        """
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=ANSWER * 10, sock_connect=_CONNECT, sock_read=ANSWER)
        try:
            async with self._open().get(
                url, headers=headers, timeout=timeout, proxy=self._proxy, allow_redirects=False
            ) as response:
                page = bool(mime) and response.content_type == "text/html" and mime != "text/html"
                if response.status != 200 or page:
                    raise ChannelError(f"{self._platform} does not give the file (status {response.status})")
                return await _capped(response, limit)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ChannelError(f"the file could not be fetched: {type(error).__name__}") from None

    async def socket(self, url: str, *, heartbeat: float | None = None) -> ClientWebSocketResponse:
        """A WebSocket; it ends when a ping every `heartbeat` seconds has no answer. Raises `ChannelError`."""
        import aiohttp

        try:
            async with asyncio.timeout(ANSWER):
                return await self._open().ws_connect(
                    url,
                    proxy=self._proxy,
                    max_msg_size=_LARGEST_FRAME,
                    timeout=aiohttp.ClientWSTimeout(ws_receive=None, ws_close=1.0),  # pyright: ignore[reportCallIssue]
                    heartbeat=heartbeat,
                )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ChannelError(f"{self._platform} cannot be reached: {type(error).__name__}") from None

    def _open(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession()
        return self._session


async def together(*work: Coroutine[object, object, None]) -> None:
    """Run all of it until the first ends; the others are cancelled, and its error is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _capped(response: ClientResponse, limit: int) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        found += chunk
        if len(found) > limit:
            raise InputError(f"the file has more than {limit} bytes")
    return bytes(found)
