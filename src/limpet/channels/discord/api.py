"""Requests to Discord's REST API. Each failure becomes the channel error that says whether the request took effect."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from limpet import __version__
from limpet.channels.discord.wire import Attached, Fault, Member, Place
from limpet.channels.rest import ANSWER, Reply, Rest
from limpet.errors import ChannelError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import File
from limpet.types.ports import Clock

_Kind = TypeVar("_Kind")
TOKEN = "The Developer Portal (discord.com/developers/applications) gives it under Bot, Reset Token."


class ApiError(RefusedError):
    """Discord refused (4xx): `code` is its own number of the reason, 0 = none."""

    def __init__(self, message: str, *, status: int, code: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code


class Api:
    """The REST API as one bot sees it. Places are asked for once and kept until they are said to have changed."""

    def __init__(self, token: str, *, base_url: str, rest: Rest, clock: Clock) -> None:
        self.token = token
        self._base = base_url.rstrip("/")
        self._rest = rest
        self._clock = clock
        self._closed_until = 0.0
        self._places: dict[str, Place] = {}

    async def call(
        self,
        method: str,
        path: str,
        kind: type[_Kind],
        *,
        body: object = None,
        files: tuple[tuple[str, bytes], ...] = (),
    ) -> _Kind:
        """What `path` answers. Raises `NotAcceptedError`, `RefusedError` (mostly an `ApiError`) and `UnsureError`."""
        import aiohttp

        left = self._closed_until - self._clock.monotonic()
        if left > 0:
            raise NotAcceptedError("Discord wants no requests at all for a while", retry_after=left)
        headers = {
            "Authorization": f"Bot {self.token}",
            "User-Agent": f"DiscordBot (limpet, {__version__})",
        }
        data: bytes | aiohttp.FormData | None = None if body is None else msgspec.json.encode(body)
        if files:
            form = aiohttp.FormData()
            form.add_field("payload_json", msgspec.json.encode(body).decode(), content_type="application/json")
            for at, (name, content) in enumerate(files):
                form.add_field(f"files[{at}]", content, filename=name)
            data = form
        elif body is not None:
            headers["Content-Type"] = "application/json"
        wait = ANSWER * 10 if files else ANSWER
        reply = await self._rest.ask(method, self._base + path, headers=headers, data=data, wait=wait)
        if reply.status >= 300:
            raise self._fault(reply)
        if kind is type(None) or reply.status == 204:
            return msgspec.convert(None, kind)
        try:
            return msgspec.json.decode(reply.raw, type=kind)
        except msgspec.DecodeError as error:
            raise UnsureError(f"what Discord answers cannot be read: {error}") from None

    def _fault(self, reply: Reply) -> ChannelError:
        try:
            fault = msgspec.json.decode(reply.raw, type=Fault)
        except msgspec.DecodeError:
            fault = None
        about = fault.message.replace(self.token, "…") if fault is not None else ""
        if reply.status == 429:
            told = fault.retry_after if fault is not None else 0.0
            wait = told or _seconds(reply.headers.get("Retry-After", ""))
            if fault is None or fault.everywhere:
                self._closed_until = self._clock.monotonic() + wait
            return NotAcceptedError(f"Discord wants fewer requests: {about or 'limited'}", retry_after=wait)
        if reply.status >= 500:
            return UnsureError(f"Discord failed: {about or reply.status}")
        if reply.status == 413:
            return RefusedError("Discord finds the files too large")
        if fault is None or not fault.message:
            # A proxy or portal answered: nothing of ours reached Discord.
            return NotAcceptedError(f"what answers is not Discord (status {reply.status})")
        if reply.status == 401:
            return ApiError("Discord does not know this token", status=401, code=fault.code, hint=TOKEN)
        return ApiError(f"Discord: {about}", status=reply.status, code=fault.code)

    async def place(self, id: str) -> Place:
        """The channel, thread or talk `id`; a plain channel when we must not see it. Raises `ChannelError`."""
        if id not in self._places:
            try:
                self._places[id] = await self.call("GET", f"/channels/{id}", Place)
            except ApiError:
                return Place(id)
        return self._places[id]

    def forget(self, id: str) -> None:
        self._places.pop(id, None)

    async def member(self, guild: str, user: str) -> Member | None:
        """Who somebody is in a guild; None when he has left."""
        try:
            return await self.call("GET", f"/guilds/{guild}/members/{user}", Member)
        except ApiError:
            return None

    def file(self, one: Attached) -> File:
        """A file of an arrival, fetched when wanted; its address says itself that we may."""

        async def fetch(limit: int) -> bytes:
            return await self._rest.download(one.url, limit, headers={})

        mime = (one.content_type or "application/octet-stream").partition(";")[0]
        return File(one.filename, mime, fetch, size=one.size, voice=one.waveform is not None)


def _seconds(header: str) -> float:
    try:
        return max(0.0, float(header))
    except ValueError:
        return 5.0
