"""A server that is reached over HTTP: a real one of the SDK, in a process of its own."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest
from aiohttp import web

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.errors import ToolError
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


class Forgetful:
    """A server of the older protocol that forgets its sessions when told to; `sessions` are those it has given out."""

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self.forgotten = 0

    async def answer(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] == "initialize":
            self.sessions.append(f"s{len(self.sessions)}")
            version = message["params"]["protocolVersion"]
            info = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "f", "version": "1"}}
            return self._result(message, info)
        if request.headers.get("Mcp-Session-Id") not in self.sessions[self.forgotten :]:
            return web.Response(status=404)
        if message["method"] == "tools/list":
            return self._result(message, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        return self._result(message, {"content": [{"type": "text", "text": self.sessions[-1]}]})

    def _result(self, message: dict[str, object], result: dict[str, object]) -> web.Response:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return web.json_response(body, headers={"Mcp-Session-Id": self.sessions[-1]})


def test_a_server_that_began_anew_is_reached_again(tmp_path: Path) -> None:
    fake = Forgetful()

    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/mcp", fake.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        spec = ServerSpec(name="far", url=f"http://127.0.0.1:{runner.addresses[0][1]}/mcp")
        server = Server(spec, Records(tmp_path), clock=FakeClock())
        try:
            assert (await server.call("t", {}, progress=print)).content[0].text == "s0"
            fake.forgotten = 1
            with pytest.raises(ToolError):
                await server.call("t", {}, progress=print)
            assert (await server.call("t", {}, progress=print)).content[0].text == "s1"
        finally:
            await server.close()
            await runner.cleanup()

    asyncio.run(main())


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
