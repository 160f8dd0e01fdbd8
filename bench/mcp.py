"""What MCP costs: a call over the SDK's own, the end of a server that will not end, CPU beside one that is dead."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fake import folder
from bench.report import Figure, Report, median
from limpet.errors import ToolError
from limpet.mcp.kept import Records
from limpet.mcp.server import Server
from limpet.mcp.servers import Servers
from limpet.mcp.spec import ServerSpec
from limpet.testing.context import tool_context
from limpet.testing.mcp import FakeServer
from limpet.types.clock import SystemClock

ADDED = 3.0
CLOSING = 2_000.0
IDLE = 5.0
ARGUMENTS = {"word": "barnacle"}
PROGRAM = """
import sys
from mcp.server import MCPServer
server = MCPServer("Echo")
@server.tool()
def echo(word: str) -> str:
    "Echo."
    return word
server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""

if TYPE_CHECKING:
    from mcp import Client

Call = Callable[[], Awaitable[object]]


def measure(*, quick: bool) -> Report:
    """Medians; the SDK's way and ours in turns, each over a connection of its own."""
    rounds = 5 if quick else 200
    with folder() as place:
        figures = asyncio.run(_figures(place, rounds, seconds=0.3 if quick else 3.0))
    return Report("MCP servers", figures, [f"calls of a tool that echoes; medians of {rounds}"])


async def _figures(place: Path, rounds: int, *, seconds: float) -> list[Figure]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    fake = FakeServer(place / "echo", ["echo"])
    plain = StdioServerParameters(command=fake.command, args=list(fake.args))
    spec = ServerSpec("stdio", fake.command, fake.args)
    figures = await _compare(place, spec, rounds, sdk=Client(plain, cache=None))
    async with _http_server() as url:
        figures += await _compare(place, ServerSpec("http", url=url), rounds, sdk=Client(url, cache=None))
    deaf = FakeServer(place / "deaf", ["echo"], deaf=True)
    server = Server(ServerSpec("deaf", deaf.command, deaf.args), Records(place / "records"), clock=SystemClock())
    await server.learn()
    began = time.perf_counter()
    await server.close()
    figures.append(Figure("a server that will not end", "closing", (time.perf_counter() - began) * 1e3, "ms", CLOSING))
    figures.append(Figure("a server that is dead", "idle CPU", await _idle(place, seconds), "%", IDLE))
    return figures


async def _compare(place: Path, spec: ServerSpec, rounds: int, *, sdk: Client) -> list[Figure]:
    servers = Servers([spec], Records(place / "records"), clock=SystemClock())
    try:
        await servers.learn(wait=30, warn=print)
        (tool,) = (tool for tool in servers.tools if tool.spec.name.endswith("_echo"))
        context = tool_context(place)

        async def ours() -> object:
            return await tool.bind(json.dumps(ARGUMENTS), workspace=str(place)).run(context)

        async with sdk:
            times = await _times({"sdk": lambda: sdk.call_tool("echo", ARGUMENTS), "ours": ours}, rounds)
    finally:
        await servers.close()
    bare, found = median(times["sdk"]), median(times["ours"])
    name = f"a call over {spec.name}"
    return [
        Figure(name, "SDK", bare, "ms"),
        Figure(name, "Limpet", found, "ms"),
        Figure(name, "added", found - bare, "ms", ADDED),
    ]


async def _times(ways: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, call in ways.items():
            began = time.perf_counter()
            await call()
            if number:
                times.setdefault(name, []).append((time.perf_counter() - began) * 1e3)
    return times


async def _idle(place: Path, seconds: float) -> float:
    """Percent of a core that a process uses beside a server that has just failed."""
    dead = FakeServer(place / "dead", exit=1)
    server = Server(ServerSpec("dead", dead.command, dead.args), Records(place / "records"), clock=SystemClock())
    for _ in range(3):
        with suppress(ToolError):
            await server.learn()
    began, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    share = (time.process_time() - used) / (time.perf_counter() - began)
    await server.close()
    return share * 100


@asynccontextmanager
async def _http_server() -> AsyncGenerator[str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(port), stdout=DEVNULL, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()
