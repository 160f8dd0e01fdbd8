"""A connection to one server over the official SDK, which is imported here only, when a server is started.

A connection is entered and left in one task (the SDK's scopes demand it), calls may come from any.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct

from limpet import __version__
from limpet.mcp.kept import Listed
from limpet.mcp.spec import ServerSpec

if TYPE_CHECKING:
    from httpx2 import Response
    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage

_PAGES = 100
MOST_TOOLS = 500

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


class Answer(Struct, frozen=True, rename="camel"):
    """What a tool answered."""

    content: tuple[Part, ...] = ()
    structured_content: object = None
    is_error: bool = False


class Connection:
    """A server that is there. `ended` is set when it is not any more, `changed` when its list of tools is another."""

    def __init__(self, client: Client, *, ended: asyncio.Event, changed: asyncio.Event, dropped: list[str]) -> None:
        self._client = client
        self._dropped = dropped
        self.ended = ended
        self.changed = changed

    async def list_tools(self) -> tuple[tuple[Listed, ...], tuple[str, ...]]:
        """The tools it has, each name once, and what had to be left out and why."""
        self._dropped.clear()
        found: dict[str, Listed] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._client.list_tools(cursor=cursor)
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
            if not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        return tuple(found.values()), tuple(self._dropped)

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
        return msgspec.convert(answer.model_dump(mode="json", by_alias=True, exclude_none=True), Answer)


@asynccontextmanager
async def connect(spec: ServerSpec, log: Path, *, refusals: list[str]) -> AsyncGenerator[Connection]:
    """Start the server (its standard error goes to `log`) or reach it. Raises whatever the SDK raises.

    Answers over HTTP that are errors are added to `refusals`: the SDK does not tell their status.
    """
    await asyncio.to_thread(import_module, "mcp.client.streamable_http")  # two seconds
    from mcp import Client
    from mcp_types import Implementation, ToolListChangedNotification

    ended, changed, dropped = asyncio.Event(), asyncio.Event(), list[str]()

    async def heard(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with AsyncExitStack() as stack:
        read, write = await _enter(stack, spec, log, refusals=refusals)
        watched = _Watched(read, ended=ended, dropped=dropped)
        client = Client(
            _Transport(watched, write),
            message_handler=heard,
            client_info=Implementation(name="limpet", version=__version__),
            cache=None,
        )
        yield Connection(await stack.enter_async_context(client), ended=ended, changed=changed, dropped=dropped)


async def _enter(stack: AsyncExitStack, spec: ServerSpec, log: Path, *, refusals: list[str]) -> TransportStreams:
    if spec.url:
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        async def answered(response: Response) -> None:
            if response.status_code >= 400:
                refusals.append(f"it answered with status {response.status_code}")

        http = create_mcp_http_client(headers=dict(spec.headers))
        http.event_hooks["response"].append(answered)
        await stack.enter_async_context(http)
        return await stack.enter_async_context(streamable_http_client(spec.url, http_client=http))
    from mcp.client.stdio import StdioServerParameters, stdio_client

    errors = stack.enter_context(log.open("a", encoding="utf-8", errors="replace"))
    parameters = StdioServerParameters(
        command=spec.command,
        args=list(spec.args),
        env=dict(spec.env),
        cwd=spec.cwd or None,
        encoding_error_handler="replace",
    )
    return await stack.enter_async_context(stdio_client(parameters, errlog=errors))


class _Transport:
    """Streams that are open already, in the shape in which the SDK takes a transport."""

    def __init__(self, read: _Watched, write: Any) -> None:
        self._streams = (read, write)

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _Watched:
    """What a server sends. Tells when it ends, and takes out of its lists what would spoil them as a whole."""

    def __init__(
        self, stream: ReadStream[SessionMessage | Exception], *, ended: asyncio.Event, dropped: list[str]
    ) -> None:
        self._stream = stream
        self._ended = ended
        self._dropped = dropped

    async def receive(self) -> SessionMessage | Exception:
        try:
            message = await self._stream.receive()
        except BaseException:
            self._ended.set()
            raise
        if not isinstance(message, Exception):
            result: object = getattr(message.message, "result", None)
            if isinstance(result, dict) and isinstance(result.get("tools"), list):  # pyright: ignore[reportUnknownMemberType]
                result["tools"] = self._usable(result["tools"])  # pyright: ignore[reportUnknownArgumentType]
        return message

    def _usable(self, tools: list[object]) -> list[object]:
        kept: list[object] = []
        for number, tool in enumerate(tools):
            found, why = usable(tool)
            if found is None:
                self._dropped.append(f"{_named(tool) or f'number {number + 1}'}: {why}")
            else:
                kept.append(found)
        return kept

    async def aclose(self) -> None:
        self._ended.set()
        await self._stream.aclose()

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Watched:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def usable(tool: object) -> tuple[dict[str, object] | None, str]:
    """A listed tool with the fields that are used, in the types that they must have; or why it cannot be used."""
    if not isinstance(tool, dict):
        return None, "it is no object"
    fields: dict[str, object] = {str(key): value for key, value in tool.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    name, schema = fields.get("name"), fields.get("inputSchema", {})
    if not isinstance(name, str) or not name.strip():
        return None, "it has no name"
    if not isinstance(schema, dict):
        return None, "the schema of its arguments is no object"
    kind: object = schema.get("type", "object")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return None, "it takes something else than an object of arguments"
    kept: dict[str, object] = {"name": name, "inputSchema": {**schema, "type": "object"}}
    for key in ("title", "description"):
        if isinstance(text := fields.get(key), str):
            kept[key] = text
    hints = fields.get("annotations")
    if isinstance(hints, dict):
        kept["annotations"] = {"readOnlyHint": hints.get("readOnlyHint") is True}  # pyright: ignore[reportUnknownMemberType]
    return kept, ""


def _named(tool: object) -> str:
    name: object = tool.get("name") if isinstance(tool, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return name if isinstance(name, str) else ""


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
