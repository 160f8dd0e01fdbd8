"""A server of the newest protocol tells of changes only who asks for that; it is asked."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.mcp.kept import Records
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock

PROGRAM = """
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("Grows")
@server.tool()
async def grow(ctx: Context) -> str:
    "Grow."
    def later() -> str:
        "Later."
        return "here"
    server.add_tool(later)
    server.remove_tool("grow")
    await ctx.notify_tools_changed()
    return ctx.protocol_version
server.run()
"""


def test_a_change_is_heard_and_taken_over(tmp_path: Path) -> None:
    async def main() -> None:
        server = Server(ServerSpec("x", sys.executable, ("-c", PROGRAM)), Records(tmp_path), clock=FakeClock())
        try:
            answer = await server.call("grow", {}, progress=print)
            assert answer.content[0].text >= "2026-07-28"
            async with asyncio.timeout(20):
                while [tool.name for tool in server.tools] != ["later"]:
                    await asyncio.sleep(0.02)
        finally:
            await server.close()

    asyncio.run(main())
