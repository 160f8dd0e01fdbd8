"""Requests to the Bot API. Each failure becomes the channel error that says whether the request took effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from limpet.channels.telegram.wire import Answer, Parameters, Stored
from limpet.errors import ChannelError, InputError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import File

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, FormData

Value = str | int | bool | list[object] | dict[str, object]
_Kind = TypeVar("_Kind")
_CONNECT = 10.0
"""Seconds for a connection to stand."""
_ANSWER = 30.0
"""Seconds for an answer; uploads take up to ten times as long."""


class ApiError(RefusedError):
    """The Bot API refused (4xx): `about` is its own description, `moved` the chat's new id when it has one."""

    def __init__(self, message: str, *, status: int, about: str, moved: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.about = about
        self.moved = moved

    def tells(self, *words: str) -> bool:
        """Whether the description has one of `words`."""
        return any(word.lower() in self.about.lower() for word in words)


class Api:
    """The methods of one bot. The session is made at first use; `lost_on_5xx`: see `Traits`."""

    def __init__(self, token: str, *, base_url: str, proxy: str = "", lost_on_5xx: bool = True) -> None:
        self._token = token
        self._base = base_url.rstrip("/")
        self._proxy = proxy or None
        self._lost = lost_on_5xx
        self._session: ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def call(
        self,
        method: str,
        kind: type[_Kind],
        *,
        params: Mapping[str, Value],
        files: Mapping[str, tuple[str, bytes]] | None = None,
        wait: float = _ANSWER,
    ) -> _Kind:
        """The result of `method`, in at most `wait` seconds. `files`: parts of a form to (name, bytes).

        Raises `NotAcceptedError`, `RefusedError` (an `ApiError` when the API said so) and `UnsureError`.
        """
        import aiohttp

        body: FormData | bytes = _form(params, files) if files else msgspec.json.encode(params)
        headers = {} if files else {"Content-Type": "application/json"}
        timeout = aiohttp.ClientTimeout(total=wait * 10 if files else wait, sock_connect=_CONNECT)
        try:
            async with self._open().post(
                f"{self._base}/bot{self._token}/{method}",
                data=body,
                headers=headers,
                timeout=timeout,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                raw = await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError) as error:
            raise NotAcceptedError(f"Telegram cannot be reached: {self._safe(error)}") from None
        except aiohttp.InvalidURL:
            raise RefusedError("the address of the Bot API is no address") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnsureError(f"Telegram did not answer {method}: {self._safe(error)}") from None
        return self._result(method, response.status, raw, kind=kind)

    def _result(self, method: str, status: int, raw: bytes, *, kind: type[_Kind]) -> _Kind:
        try:
            answer = msgspec.json.decode(raw, type=Answer)
        except msgspec.DecodeError:
            answer = None
        if status == 413:
            raise RefusedError(f"Telegram finds the request of {method} too large")
        if answer is None and status < 500:
            # A proxy or captive portal answered: nothing of ours reached the API.
            raise NotAcceptedError(f"what answers {method} is no Bot API (status {status})")
        if answer is not None and answer.ok:
            return self._decoded(method, answer.result, kind)
        about = self._hide(answer.description) if answer is not None else ""
        code = (answer.error_code if answer is not None else 0) or status
        told = answer.parameters if answer is not None else Parameters()
        if code == 429:
            raise NotAcceptedError(f"Telegram wants fewer requests: {about}", retry_after=told.retry_after)
        if code < 500:
            raise ApiError(f"Telegram: {about}", status=code, about=about, moved=told.migrate_to_chat_id)
        message = f"Telegram failed in {method}: {about or status}"
        if answer is None and self._lost:
            raise UnsureError(message)  # a machine in front of the API has not heard its answer
        raise NotAcceptedError(message)

    def _decoded(self, method: str, result: msgspec.Raw, kind: type[_Kind]) -> _Kind:
        try:
            return msgspec.json.decode(result, type=kind)
        except msgspec.DecodeError as error:
            raise UnsureError(f"the answer to {method} cannot be read: {error}") from None

    async def download(self, media: str, limit: int) -> bytes:
        """The bytes of the file `media`. Raises `InputError` above `limit` and `ChannelError`."""
        import aiohttp

        try:
            stored = await self.call("getFile", Stored, params={"file_id": media})
        except ApiError as error:
            if error.tells("file is too big"):
                raise InputError("the file is larger than the 20 MB that bots are given") from None
            raise
        _within(stored.file_size, limit)
        if stored.file_path.startswith("/"):
            raise ChannelError("the Bot API server runs with --local and gives no files over the network")
        try:
            url = f"{self._base}/file/bot{self._token}/{stored.file_path}"
            timeout = aiohttp.ClientTimeout(total=_ANSWER * 10, sock_connect=_CONNECT, sock_read=_ANSWER)
            async with self._open().get(url, timeout=timeout, proxy=self._proxy) as response:
                if response.status != 200:
                    raise ChannelError(f"Telegram does not give the file (status {response.status})")
                return await _capped(response, limit)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ChannelError(f"the file could not be fetched: {self._safe(error)}") from None

    def file(self, media: str, name: str, mime: str, *, size: int = 0, voice: bool = False) -> File:
        """A file of an arrival, fetched when wanted."""

        async def fetch(limit: int) -> bytes:
            return await self.download(media, limit)

        return File(name, mime, fetch, size=size, voice=voice)

    def _open(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession()
        return self._session

    def _safe(self, error: Exception) -> str:
        """What the library says, without the token that addresses have in them."""
        return self._hide(str(error) or type(error).__name__)

    def _hide(self, text: str) -> str:
        return text.replace(self._token, "…") if self._token else text


def _form(params: Mapping[str, Value], files: Mapping[str, tuple[str, bytes]]) -> FormData:
    import aiohttp

    form = aiohttp.FormData()
    for name, value in params.items():
        form.add_field(name, value if isinstance(value, str) else msgspec.json.encode(value).decode())
    for part, (name, data) in files.items():
        form.add_field(part, data, filename=name)
    return form


def _within(size: int, limit: int) -> None:
    if size > limit:
        raise InputError(f"the file has {size} bytes, more than {limit}")


async def _capped(response: ClientResponse, limit: int) -> bytes:
    found = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        found += chunk
        _within(len(found), limit)
    return bytes(found)
