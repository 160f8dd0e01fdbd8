"""What a server sends, watched: when it ends, and what in its lists would spoil them as a whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage


class Source(Protocol):
    """Where messages come from: a stream of the SDK's, or of ours."""

    async def receive(self) -> SessionMessage | Exception: ...
    async def aclose(self) -> None: ...


class Watched:
    """What a server sends. Tells when it ends, and takes out of its lists what would spoil them as a whole."""

    def __init__(self, stream: Source, *, ended: asyncio.Event, dropped: list[str]) -> None:
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

    def __aiter__(self) -> Watched:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Watched:
        return self

    async def __aexit__(self, *_: object) -> None:
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
