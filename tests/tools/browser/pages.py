"""A real Chromium over pages on loopback, which counts who connects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from limpet.egress.gate import Gate
from limpet.net.guard import Guard, NetworkRules
from limpet.testing.context import tool_context
from limpet.toolkit.schema import FunctionTool
from limpet.tools.browser.chromium import is_available
from limpet.tools.browser.session import Browser, BrowserSettings
from limpet.tools.browser.tool import make_browser
from limpet.types.tool import ToolResult

HERE = ("127.0.0.0/8",)
GUARD = 90.0
needs_chromium = pytest.mark.skipif(
    not is_available(""), reason="there is no Chromium on the path, or no Playwright (extra browser)"
)


class Site:
    """Answers with `pages` by path: HTML, or a whole answer that begins with HTTP/."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
            path = asked.split(b" ")[1].decode()
            self.asked.append(path)
            page = self.pages.get(path.partition("?")[0], "")
            if not page.startswith("HTTP/"):
                head = f"HTTP/1.1 {200 if page else 404} x\r\nContent-Type: text/html; charset=utf-8"
                page = f"{head}\r\nContent-Length: {len(page.encode())}\r\n\r\n{page}"
            writer.write(page.encode())
            await writer.drain()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def site(pages: Mapping[str, str]) -> AsyncGenerator[Site]:
    made = Site(pages)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


class Hands:
    """The tool `browser` in the hands of a test."""

    def __init__(self, tool: FunctionTool, browser: Browser, workspace: Path) -> None:
        self.browser = browser
        self._tool = tool
        self._workspace = workspace

    async def result(self, call: str, session: str = "s1") -> ToolResult:
        context = tool_context(self._workspace)
        bound = self._tool.bind(call, workspace=str(self._workspace))
        return await bound.run(replace(context, session=session))

    async def do(self, action: str, session: str = "s1", **arguments: str | int) -> str:
        return (await self.result(json.dumps({"action": action, **arguments}), session)).text


@asynccontextmanager
async def chromium(
    folder: Path, *, cidrs: tuple[str, ...] = HERE, settings: BrowserSettings | None = None
) -> AsyncGenerator[Hands]:
    how = structs.replace(settings or BrowserSettings(), timeout=20.0)
    guard = Guard(NetworkRules(allow_cidrs=cidrs))
    browser = Browser(folder / "browser", how, open_gate=lambda: Gate(guard))
    (folder / "w").mkdir(exist_ok=True)
    try:
        yield Hands(make_browser(browser), browser, folder / "w")
    finally:
        await browser.close()


def ref_of(snapshot: str, what: str) -> str:
    """The ref of the line that holds `what`."""
    line = next(line for line in snapshot.splitlines() if what in line and "[ref=" in line)
    return line.partition("[ref=")[2].partition("]")[0]
