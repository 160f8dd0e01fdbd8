"""A connection to one server over the official SDK, which is imported here only, when a server is started.

A connection is entered and left in one task (the SDK's scopes demand it), calls may come from any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from limpet import __version__
from limpet.mcp.kept import Argument, Listed, ListedPrompt
from limpet.mcp.oauth import Logins, known_login
from limpet.mcp.spec import ServerSpec, program_of
from limpet.mcp.stdio import child
from limpet.mcp.watched import Source, Watched

if TYPE_CHECKING:
    from httpx2 import Response
    from mcp import Client
    from mcp.client.auth import OAuthClientProvider
    from pydantic import BaseModel

log = logging.getLogger(__name__)

_PAGES = 100
_ASKED_AGAIN = 30.0
"""Seconds after which a server that has stopped telling of changes is asked again."""
MOST_TOOLS = 500

_NO_SUCH_METHOD = -32601
"""The code of JSON-RPC."""


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


P = TypeVar("P", bound=_Page)
T = TypeVar("T")
Progress = Callable[[str], None]


class Resource(Struct, frozen=True, rename="camel"):
    """A file that came with an answer, as `text` or as base64 (`blob`)."""

    uri: str = ""
    mime_type: str = ""
    text: str | None = None
    blob: str | None = None


class Part(Struct, frozen=True, rename="camel"):
    """One block of an answer; which fields count depends on `type`. `data` is base64."""

    type: str
    text: str = ""
    data: str = ""
    mime_type: str = ""
    uri: str = ""
    name: str = ""
    description: str = ""
    resource: Resource | None = None


class Offer(Struct, frozen=True):
    """A resource there is to read, or (`template`) a pattern of their addresses. `size` is bytes, None = not known."""

    uri: str
    name: str = ""
    description: str = ""
    mime: str = ""
    size: int | None = None
    template: bool = False


class Spoken(Struct, frozen=True):
    """One message of a prompt."""

    role: str
    content: Part


class Script(Struct, frozen=True):
    """What a prompt says."""

    messages: tuple[Spoken, ...] = ()


class _Contents(Struct, frozen=True):
    contents: tuple[Resource, ...] = ()


class Answer(Struct, frozen=True, rename="camel"):
    """What a tool answered."""

    content: tuple[Part, ...] = ()
    structured_content: object = None
    is_error: bool = False


class Connection:
    """A server that is there. `ended` is set when it no longer is, `changed` when its tools or prompts are others."""

    def __init__(self, client: Client, *, ended: asyncio.Event, changed: asyncio.Event, dropped: list[str]) -> None:
        self._client = client
        self._dropped = dropped
        self.ended = ended
        self.changed = changed

    async def list_tools(self) -> tuple[tuple[Listed, ...], tuple[str, ...]]:
        """The tools it has, each name once, and what had to be left out and why."""
        self._dropped.clear()
        found: dict[str, Listed] = {}
        async for page in _pages(self._client.list_tools):
            for tool in page.tools:
                if tool.name in found or len(found) >= MOST_TOOLS:
                    why = "there is another of that name" if tool.name in found else f"only {MOST_TOOLS} are taken"
                    self._dropped.append(f"{tool.name}: {why}")
                    continue
                hints = tool.annotations
                found[tool.name] = Listed(
                    name=tool.name,
                    description=tool.description or tool.title or "",
                    schema=Raw(msgspec.json.encode(tool.input_schema)),
                    read_only=bool(hints and hints.read_only_hint),
                )
        return tuple(found.values()), tuple(self._dropped)

    @property
    def has_resources(self) -> bool:
        return self._client.server_capabilities.resources is not None

    async def list_prompts(self) -> tuple[ListedPrompt, ...]:
        """The prompts it has; none where it knows of no such thing."""
        if self._client.server_capabilities.prompts is None:
            return ()
        found: dict[str, ListedPrompt] = {}
        async for page in _pages(self._client.list_prompts):
            for one in page.prompts:
                arguments = (
                    Argument(given.name, given.description or "", required=bool(given.required))
                    for given in one.arguments or ()
                )
                listed = ListedPrompt(one.name, one.description or one.title or "", tuple(arguments))
                found.setdefault(one.name, listed)
        return tuple(found.values())[:MOST_TOOLS]

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> Script:
        """Raises whatever the SDK raises."""
        return _plain(await self._client.get_prompt(name, dict(arguments)), Script)

    async def list_resources(self) -> tuple[Offer, ...]:
        """The resources there are, then the templates of further ones. Raises whatever the SDK raises."""
        from mcp.shared.exceptions import MCPError

        found: list[Offer] = []
        async for page in _pages(self._client.list_resources):
            for one in page.resources:
                name, about = one.title or one.name, one.description or ""
                found.append(Offer(str(one.uri), name, about, mime=one.mime_type or "", size=one.size))
        try:
            async for page in _pages(self._client.list_resource_templates):
                for one in page.resource_templates:
                    name, about = one.title or one.name, one.description or ""
                    found.append(Offer(one.uri_template, name, about, mime=one.mime_type or "", template=True))
        except MCPError as error:
            if error.code != _NO_SUCH_METHOD:
                raise
        return tuple(found)

    async def read_resource(self, uri: str) -> tuple[Resource, ...]:
        """Raises whatever the SDK raises."""
        return _plain(await self._client.read_resource(uri), _Contents).contents

    async def call(self, tool: str, arguments: Mapping[str, object], *, show: Progress) -> Answer:
        """Raises whatever the SDK raises; see `reason`."""

        async def told(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            show(f"{share}: {message}" if message else share)

        try:
            answer = await self._client.call_tool(tool, dict(arguments), progress_callback=told)
        except Exception as error:
            if "Session terminated" in str(error):  # so the SDK calls it when a server over HTTP has begun anew
                self.ended.set()
            raise
        return _plain(answer, Answer)


async def _pages(fetch: Callable[..., Awaitable[P]]) -> AsyncGenerator[P]:
    """All pages of a list."""
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await fetch(cursor=cursor)
        yield page
        if not page.next_cursor or page.next_cursor == cursor:
            return
        cursor = page.next_cursor


def _plain(model: BaseModel, kind: type[T]) -> T:
    """What the SDK gives in our own words."""
    return msgspec.convert(model.model_dump(mode="json", by_alias=True, exclude_none=True), kind)


@asynccontextmanager
async def connect(
    spec: ServerSpec, log_file: Path, *, refusals: list[str], login: OAuthClientProvider | None = None
) -> AsyncGenerator[Connection]:
    """Start the server (its standard error goes to `log_file`) or reach it. Raises whatever the SDK raises.

    `login` signs the requests instead of what is known of an earlier login.

    Answers over HTTP that are errors are added to `refusals`: the SDK does not tell their status.
    """
    await asyncio.to_thread(import_module, "mcp.client.streamable_http")  # two seconds
    from mcp import Client
    from mcp_types import Implementation, PromptListChangedNotification, ToolListChangedNotification

    ended, changed, dropped = asyncio.Event(), asyncio.Event(), list[str]()

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification | PromptListChangedNotification):
            changed.set()

    async with AsyncExitStack() as stack:
        if spec.url:
            read, write = await _reach(stack, spec, refusals=refusals, login=login)
        else:
            read, write = await stack.enter_async_context(child(await asyncio.to_thread(program_of, spec), log_file))
        watched = Watched(read, ended=ended, dropped=dropped)
        client = Client(
            _Transport(watched, write),
            message_handler=heard,
            client_info=Implementation(name="limpet", version=__version__),
            cache=None,
        )
        await stack.enter_async_context(client)
        listening = asyncio.create_task(_listen(client, changed), name=f"mcp {spec.name} changes")
        stack.push_async_callback(_stopped, listening)
        yield Connection(client, ended=ended, changed=changed, dropped=dropped)


async def _listen(client: Client, changed: asyncio.Event) -> None:
    """Be told of changed lists by a server of the protocol of 2026, which tells only who asks; others tell unasked."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    while True:
        try:
            async with client.listen(tools_list_changed=True, prompts_list_changed=True) as told:
                async for _ in told:
                    changed.set()
            return
        except SubscriptionLost:
            await asyncio.sleep(_ASKED_AGAIN)
            changed.set()  # what was said meanwhile is not said again
        except (ListenNotSupportedError, MCPError, TimeoutError) as error:
            log.debug("no word of changes: %s", error)
            return


async def _stopped(task: asyncio.Task[None]) -> None:
    """End `task`, whatever it ends with: the connection is at its end as well."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _reach(
    stack: AsyncExitStack, spec: ServerSpec, *, refusals: list[str], login: OAuthClientProvider | None
) -> tuple[Source, Any]:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def answered(response: Response) -> None:
        if response.status_code == 401:
            refusals.append(f"it wants a login (limpet mcp login {spec.name})")
        elif response.status_code >= 400:
            refusals.append(f"it answered with status {response.status_code}")

    if login is None and spec.home:
        login = known_login(Logins(Path(spec.home)), spec.name, spec.url, refusals=refusals)
    http = create_mcp_http_client(headers=dict(spec.headers), auth=login)
    http.event_hooks["response"].append(answered)
    await stack.enter_async_context(http)
    return await stack.enter_async_context(streamable_http_client(spec.url, http_client=http))


class _Transport:
    """Streams that are open already, in the shape in which the SDK takes a transport."""

    def __init__(self, read: Watched, write: Any) -> None:
        self._streams = (read, write)

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        return None


def reason(error: BaseException, refusals: Sequence[str] = ()) -> str:
    """Why the SDK failed, in a sentence: it raises errors of many kinds, often several in a group."""
    if isinstance(error, BaseExceptionGroup):
        return reason(error.exceptions[0], refusals)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("mcp"):
        return "the package for MCP is not installed (pip install 'limpet[mcp]')"
    if isinstance(error, FileNotFoundError | PermissionError):
        return f"{error.filename or 'its program'} cannot be run: {error.strerror}"
    text = " ".join(str(error).split())[:500]
    if text == "Connection closed":
        return "it ended, or closed the connection"
    if text == "Server returned an error response" and refusals:
        return refusals[-1]
    return text or type(error).__name__
