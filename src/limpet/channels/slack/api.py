"""Requests to Slack's Web API. Each failure becomes the channel error that says whether the request took effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from limpet.channels.rest import ANSWER, Reply, Rest
from limpet.channels.slack.wire import Answer, Attached, ChatAnswer, Slot, UserAnswer
from limpet.errors import ChannelError, NotAcceptedError, RefusedError, UnsureError
from limpet.types.channel import File

_Kind = TypeVar("_Kind")
Value = str | int | bool | list[object]
TOKENS = (
    "api.slack.com/apps, your app: the bot token (xoxb-…) stands under OAuth & Permissions, "
    "the app-level token (xapp-…, scope connections:write) under Basic Information."
)
_CREDENTIALS = (
    "invalid_auth",
    "not_authed",
    "account_inactive",
    "token_revoked",
    "token_expired",
    "not_allowed_token_type",
)
_LATER = ("ratelimited", "service_unavailable", "request_timeout", "team_added_to_org")
_OPEN = ("internal_error", "fatal_error")
"""Slack: "some aspect of the operation" may have succeeded."""
_NAMES_KEPT = 2_000


class ApiError(RefusedError):
    """Slack refused: `code` is its own word for it."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class Api:
    """The Web API as one app sees it: with the token of its bot, or (`app`) with that for its connections."""

    def __init__(self, bot_token: str, app_token: str, *, base_url: str, rest: Rest) -> None:
        self._bot = bot_token
        self._app = app_token
        self._base = base_url.rstrip("/")
        self._rest = rest
        self._names: dict[str, str] = {}

    async def call(
        self, method: str, kind: type[_Kind], params: Mapping[str, Value] | None = None, *, app: bool = False
    ) -> _Kind:
        """What `method` answers. Raises `NotAcceptedError`, `RefusedError` (an `ApiError`) and `UnsureError`."""
        headers = {
            "Authorization": f"Bearer {self._app if app else self._bot}",
            "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
        }
        given = {name: _plain(value) for name, value in (params or {}).items()}
        reply = await self._rest.ask(
            "POST", f"{self._base}/{method}", headers=headers, data=urlencode(given).encode(), wait=ANSWER
        )
        answer = _answer(reply)
        if answer is None or not answer.ok or reply.status != 200:
            raise _fault(method, reply, answer)
        try:
            return msgspec.json.decode(reply.raw, type=kind)
        except msgspec.DecodeError as error:
            raise UnsureError(f"the answer to {method} cannot be read: {error}") from None

    async def put(self, name: str, data: bytes) -> str:
        """Lay a file ready; gives its id. Nobody sees it yet, so whatever fails is `NotAcceptedError` or refused."""
        try:
            slot = await self.call("files.getUploadURLExternal", Slot, {"filename": name, "length": len(data)})
            headers = {"Content-Type": "application/octet-stream"}
            reply = await self._rest.ask("POST", slot.upload_url, headers=headers, data=data, wait=ANSWER * 10)
        except UnsureError as error:
            raise NotAcceptedError(str(error)) from None
        if reply.status != 200:
            raise NotAcceptedError(f"Slack did not take the file (status {reply.status})")
        return slot.file_id

    async def user_name(self, id: str) -> str:
        """How somebody calls himself; his id where Slack does not say."""
        if id not in self._names:
            try:
                user = (await self.call("users.info", UserAnswer, {"user": id})).user
                self._keep(id, user.profile.display_name or user.profile.real_name or user.name or id)
            except ApiError:
                self._keep(id, id)
            except ChannelError:
                return id
        return self._names[id]

    async def chat_name(self, id: str) -> str:
        """The name of a channel; empty where it has none or Slack does not say."""
        if id not in self._names:
            try:
                chat = (await self.call("conversations.info", ChatAnswer, {"channel": id})).channel
                self._keep(id, chat.name or "")
            except ApiError:
                self._keep(id, "")
            except ChannelError:
                return ""
        return self._names[id]

    def _keep(self, id: str, name: str) -> None:
        if len(self._names) >= _NAMES_KEPT:
            self._names.clear()
        self._names[id] = name

    def file(self, one: Attached) -> File:
        """A file of an arrival, fetched when wanted. Only Slack's own machines are shown the token."""
        mime = one.mimetype or "application/octet-stream"

        async def fetch(limit: int) -> bytes:
            host = urlsplit(one.url_private).hostname or ""
            if host != urlsplit(self._base).hostname and not host.endswith(".slack.com"):
                raise ChannelError("the file is not kept by Slack")
            headers = {"Authorization": f"Bearer {self._bot}"}
            return await self._rest.download(one.url_private, limit, headers=headers, mime=mime)

        return File(one.name or "file", mime, fetch, size=one.size, voice=one.subtype == "slack_audio")


def _plain(value: Value) -> str:
    """A parameter as forms carry it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _answer(reply: Reply) -> Answer | None:
    try:
        return msgspec.json.decode(reply.raw, type=Answer)
    except msgspec.DecodeError:
        return None


def _fault(method: str, reply: Reply, answer: Answer | None) -> ChannelError:
    error = answer.error if answer is not None else ""
    told = reply.headers.get("Retry-After", "")
    wait = float(told) if told.isdecimal() else 0.0
    if reply.status == 429 or error in _LATER:
        return NotAcceptedError(f"Slack wants {method} later: {error or reply.status}", retry_after=wait)
    if reply.status >= 500 or error in _OPEN:
        return UnsureError(f"Slack failed in {method}: {error or reply.status}")
    if not error:
        # A proxy or portal answered: nothing of ours reached Slack.
        return NotAcceptedError(f"what answers {method} is not Slack (status {reply.status})")
    if error in _CREDENTIALS:
        return ApiError(f"Slack does not take this token: {error}", code=error, hint=TOKENS)
    if error == "missing_scope":
        needed = answer.needed if answer is not None else ""
        hint = f"Add {needed} under OAuth & Permissions, Bot Token Scopes, and install the app again."
        return ApiError(f"Slack: {method} needs the scope {needed}", code=error, hint=hint)
    return ApiError(f"Slack refuses {method}: {error}", code=error)
