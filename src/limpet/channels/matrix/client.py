"""Requests to a homeserver. Each failure becomes the channel error that says whether the request took effect.

Imports matrix-nio: loaded when the channel runs.
"""

# The library has types, but not for everything.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiohttp
from nio import AsyncClient, AsyncClientConfig, InviteMemberEvent, JoinResponse, LoginResponse, RoomTypingResponse
from nio.crypto import ENCRYPTION_ENABLED
from nio.responses import (
    ErrorResponse,
    Response,
    RoomGetEventResponse,
    RoomMessagesResponse,
    RoomRedactResponse,
    RoomSendResponse,
    SyncResponse,
    UploadResponse,
    WhoamiResponse,
)

from limpet.channels.matrix.wire import Encrypted, Happened, happened
from limpet.config.channels import MatrixSettings
from limpet.errors import ChannelError, ConfigError, InputError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.envelope import Attachment

log = logging.getLogger(__name__)

_SECONDS = 30
_PAGES = 20
_FILTER: dict[str, object] = {"room": {"timeline": {"limit": 100}}, "presence": {"types": []}}
_NO_ENTRY = ("M_FORBIDDEN", "M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_INVALID_USERNAME")
News = SyncResponse
"""What a sync says."""
_Answer = TypeVar("_Answer", bound=Response)


class Homeserver:
    """One account on it. After `enter` it is logged in as `user`."""

    def __init__(self, settings: MatrixSettings, folder: str) -> None:
        if settings.encryption and not ENCRYPTION_ENABLED:
            raise ConfigError("Encryption of Matrix needs the extra matrix-e2e.")
        store = ""
        if settings.encryption:
            store = str(Path(folder) / "keys")
            Path(store).mkdir(mode=0o700, parents=True, exist_ok=True)
        config = AsyncClientConfig(
            max_limit_exceeded=0,
            max_timeouts=0,
            request_timeout=_SECONDS,
            encryption_enabled=settings.encryption,
            store_sync_tokens=False,
        )
        self._settings = settings
        self.nio = AsyncClient(
            settings.homeserver.rstrip("/"), settings.user, device_id=settings.device, store_path=store, config=config
        )

    @property
    def user(self) -> str:
        return str(self.nio.user_id)

    @property
    def token(self) -> str:
        return str(self.nio.access_token)

    async def enter(self, *, password: str, token: str) -> None:
        """Log in, with a token if there is one. Raises `RefusedError` and `ChannelError`."""
        if token:
            self.nio.access_token = token
            found = await self._entered(self.nio.whoami(), WhoamiResponse)
            self.nio.restore_login(found.user_id, found.device_id or self._settings.device, token)
        else:
            await self._entered(self.nio.login(password, device_name="Limpet"), LoginResponse)

    async def _entered(self, request: Awaitable[object], kind: type[_Answer]) -> _Answer:
        try:
            return await self.ask(request, kind)
        except RefusedError as error:
            if any(code in str(error) for code in _NO_ENTRY):
                raise RefusedError("The homeserver does not take this user and password or token.") from None
            raise ChannelError(str(error)) from None

    async def ask(self, request: Awaitable[object], kind: type[_Answer]) -> _Answer:
        """What the homeserver answers. Raises what a send may raise."""
        try:
            answer = await request
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotAcceptedError(f"The homeserver cannot be reached: {type(error).__name__}") from None
        except aiohttp.InvalidURL:
            raise RefusedError("The address of the homeserver is no address.") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnsureError(f"The homeserver did not answer: {type(error).__name__}") from None
        if isinstance(answer, kind):
            return answer
        if not isinstance(answer, ErrorResponse):
            raise UnsureError("The homeserver gave an answer that cannot be read.")
        transport = answer.transport_response
        status = int(getattr(transport, "status", 0))
        about = f"The homeserver: {answer.status_code or status} {answer.message}"
        if answer.status_code == "M_LIMIT_EXCEEDED" or status == 429:
            raise NotAcceptedError(about, retry_after=(answer.retry_after_ms or 5_000) / 1_000)
        if status >= 500:
            raise UnsureError(about)
        if not answer.status_code and status < 400:
            raise UnsureError("The homeserver gave an answer that cannot be read.")
        raise RefusedError(about)

    async def sync(self, since: str, *, whole: bool) -> News:
        """What happened since; `whole`: with the state of all rooms, at once."""
        request = self.nio.sync(
            timeout=0 if whole else _SECONDS * 1_000, since=since or None, full_state=whole, sync_filter=_FILTER
        )
        answer = await self.ask(request, SyncResponse)
        if self._settings.encryption:
            await self._tend_keys()
        return answer

    async def _tend_keys(self) -> None:
        """What the library has to say to the devices of others after a sync."""
        try:
            await self.nio.send_to_device_messages()
            if self.nio.should_upload_keys:
                await self.nio.keys_upload()
            if self.nio.should_query_keys:
                await self.nio.keys_query()
            if self.nio.should_claim_keys:
                await self.nio.keys_claim({**self.nio.get_users_for_key_claiming()})
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ChannelError(f"The homeserver did not answer: {type(error).__name__}") from None

    def invitations(self, news: News) -> list[tuple[str, str]]:
        """Rooms and who asks us into them."""
        found: list[tuple[str, str]] = []
        for room, invitation in news.rooms.invite.items():
            for one in invitation.invite_state:
                if isinstance(one, InviteMemberEvent) and one.state_key == self.user:
                    found.append((str(room), str(one.sender)))
        return found

    async def timelines(self, news: News, since: str) -> AsyncIterator[tuple[str, list[object]]]:
        """Rooms and what happened in them, also where that is more than a sync holds."""
        for room, info in news.rooms.join.items():
            events: list[object] = list(info.timeline.events)
            if info.timeline.limited and info.timeline.prev_batch:
                events = await self._before(room, start=info.timeline.prev_batch, since=since) + events
            yield str(room), events

    async def _before(self, room: str, *, start: str, since: str) -> list[object]:
        """Events of a room from `since` to `start`, the oldest first."""
        found: list[object] = []
        for _ in range(_PAGES):
            request = self.nio.room_messages(room, start, since, limit=100)
            try:
                page = await self.ask(request, RoomMessagesResponse)
            except RefusedError as error:
                log.warning("matrix: what was said in %s before cannot be had: %s", room, error)
                break
            found += page.chunk
            if not page.end or not page.chunk:
                break
            start = page.end
        else:
            log.warning("matrix: too much was said in %s: the oldest is left out", room)
        return found[::-1]

    async def join(self, room: str) -> None:
        await self.ask(self.nio.join(room), JoinResponse)

    async def typing(self, room: str, seconds: float) -> None:
        await self.ask(self.nio.room_typing(room, True, int(seconds * 1000)), RoomTypingResponse)

    async def event(self, room: str, id: str) -> Happened | None:
        """An event of a room, None when we cannot have it."""
        try:
            answer = await self.ask(self.nio.room_get_event(room, id), RoomGetEventResponse)
        except RefusedError:
            return None
        return happened(answer.event.source)

    async def put(self, room: str, kind: str, content: dict[str, object], *, key: str) -> str:
        """Send an event; the same `key` again is the same event. Raises what a send may raise."""
        known = self.nio.rooms.get(room)
        if known is None:
            raise NotAcceptedError(f"We are not in {room}, or not yet.")
        if known.encrypted and not self._settings.encryption:
            raise RefusedError("The room is encrypted: the setting encryption and the extra matrix-e2e are needed.")
        request = self.nio.room_send(room, kind, content, tx_id=key, ignore_unverified_devices=True)
        return str((await self.ask(request, RoomSendResponse)).event_id)

    async def redact(self, room: str, id: str) -> None:
        await self.ask(self.nio.room_redact(room, id), RoomRedactResponse)

    async def upload(self, room: str, one: Attachment, path: str) -> dict[str, object]:
        """The part of an event's content that names an uploaded file."""
        encrypted = room in self.nio.rooms and bool(self.nio.rooms[room].encrypted)
        try:
            with Path(path).open("rb") as file:
                request = self.nio.upload(file, one.mime, one.name, encrypt=encrypted, filesize=one.size)
                answer, keys = await request
        except FileNotFoundError:
            raise RefusedError("the file to be sent is gone") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NotAcceptedError(f"{one.name} could not be uploaded: {type(error).__name__}") from None
        if not isinstance(answer, UploadResponse):
            error = RefusedError if "TOO_LARGE" in str(answer) else NotAcceptedError
            raise error(f"{one.name} could not be uploaded: {answer}")
        if keys:
            return {"file": {**keys, "url": answer.content_uri}}
        return {"url": answer.content_uri}

    async def download(self, at: str, limit: int, *, sealed: Encrypted | None) -> bytes:
        """The bytes of a file of the media repository. Raises `InputError` above `limit` and `ChannelError`."""
        server, _, id = at.removeprefix("mxc://").partition("/")
        path = f"/_matrix/client/v1/media/download/{quote(server, safe=':')}/{quote(id, safe='')}"
        found = bytearray()
        try:
            answer = await self.nio.send("GET", path, headers={"Authorization": f"Bearer {self.token}"}, timeout=300)
            async with answer:
                if answer.status != 200:
                    raise ChannelError(f"The homeserver does not give the file (status {answer.status}).")
                async for chunk in answer.content.iter_chunked(1 << 16):
                    found += chunk
                    if len(found) > limit:
                        raise InputError(f"the file has more than {limit} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ChannelError(f"The file could not be fetched: {type(error).__name__}") from None
        return _opened(bytes(found), sealed) if sealed is not None else bytes(found)


def _opened(data: bytes, sealed: Encrypted) -> bytes:
    from nio.crypto import decrypt_attachment
    from nio.exceptions import EncryptionError

    try:
        return decrypt_attachment(data, sealed.key.k, sealed.hashes.get("sha256", ""), sealed.iv)
    except EncryptionError as error:
        raise ChannelError(f"The file cannot be decrypted: {error}") from None
