"""A server that is reached over HTTP: a real one of the SDK, in a process of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.mcp.kept import Records
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock

PROGRAM = """
import sys
from mcp.server import MCPServer
server = MCPServer("Demo")
@server.tool()
def add(a: int, b: int) -> int:
    "Add."
    return a + b
server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""


async def reachable(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            await writer.wait_closed()
            return


def test_a_server_over_http_is_called_and_left(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def main() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, str(port), stderr=asyncio.subprocess.DEVNULL
        )
        try:
            await reachable(port)
            spec = ServerSpec(name="far", url=f"http://127.0.0.1:{port}/mcp")
            server = Server(spec, Records(tmp_path), clock=FakeClock())
            try:
                answer = await server.call("add", {"a": 1, "b": 2}, progress=print)
            finally:
                await server.close()
            assert (answer.content[0].text, [tool.name for tool in server.tools]) == ("3", ["add"])
        finally:
            process.kill()
            await process.wait()

    asyncio.run(main())
