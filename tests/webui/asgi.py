"""Asks an ASGI application in a test, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Scope

HOST = "127.0.0.1:8790"


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


async def ask(
    app: ASGIApp, path: str, *, method: str = "GET", body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """One request and its answer; the last of equal headers counts."""
    given = {"host": HOST, **(headers or {})}
    scope: Scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "/web",
        "scheme": "http",
        "server": ("127.0.0.1", 8790),
        "client": ("127.0.0.1", 50_000),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    found = Answer()

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.status = message["status"]
            found.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
        else:
            found.body += message.get("body", b"")

    await app(scope, receive, send)
    return found


async def knock(app: ASGIApp, headers: Mapping[str, str]) -> list[str]:
    """Open a WebSocket; gives the types of what is answered."""
    scope: Scope = {
        "type": "websocket",
        "path": "/web/_nicegui_ws/socket.io/",
        "query_string": b"",
        "root_path": "/web",
        "scheme": "ws",
        "server": ("127.0.0.1", 8790),
        "client": ("127.0.0.1", 50_000),
        "headers": [(name.encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()],
        "subprotocols": [],
    }
    told: list[str] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        told.append(message["type"])

    await app(scope, receive, send)
    return told
