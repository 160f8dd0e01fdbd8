"""Resources of servers: listed and read as words of strangers, pictures as pictures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.errors import ToolError
from limpet.mcp.kept import Records
from limpet.mcp.servers import Servers
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.testing.mcp import FakeServer
from limpet.types.content import Image
from limpet.types.tool import ToolResult

LETTER = {"uri": "file:///letter", "name": "letter", "mimeType": "text/plain", "size": 23, "description": "A  letter."}


def used(
    folder: Path, *calls: tuple[str, dict[str, str]], resources: bool = True
) -> tuple[list[str], list[ToolResult]]:
    """The names of the tools there are, and the results of calls."""
    more: dict[str, object] = {"resources": [LETTER]} if resources else {}
    fake = FakeServer(folder / "s", ["echo"], **more)
    plain = FakeServer(folder / "p", ["echo"])

    async def run() -> tuple[list[str], list[ToolResult]]:
        specs = [ServerSpec(name, one.command, one.args) for name, one in (("lib", fake), ("plain", plain))]
        servers = Servers(specs, Records(folder), clock=FakeClock())
        try:
            await servers.learn(wait=20, warn=print)
            tools = {tool.spec.name: tool for tool in servers.tools}
            bound = [tools[name].bind(json.dumps(given), workspace=str(folder)) for name, given in calls]
            return list(tools), [await one.run(tool_context(folder)) for one in bound]
        finally:
            await servers.close()

    return asyncio.run(run())


def test_without_resources_there_are_no_tools_for_them(tmp_path: Path) -> None:
    assert used(tmp_path, resources=False)[0] == ["mcp_lib_echo", "mcp_plain_echo"]


def test_they_are_listed_with_what_is_said_of_them(tmp_path: Path) -> None:
    names, (listed,) = used(tmp_path, ("mcp__list_resources", {}))
    assert names[:2] == ["mcp__list_resources", "mcp__read_resource"]
    assert "file:///letter  letter (text/plain, 23 bytes): A letter." in listed.text
    assert listed.trust == "external"


def test_what_is_read_is_a_stranger_s_and_marked(tmp_path: Path) -> None:
    _, (read,) = used(tmp_path, ("mcp__read_resource", {"server": "lib", "uri": "file:///letter"}))
    assert "<mcp-result>\n[resource file:///letter]\nthe words of a stranger\n</mcp-result>" in read.text
    assert read.trust == "external"


def test_a_picture_is_a_picture(tmp_path: Path) -> None:
    _, (read,) = used(tmp_path, ("mcp__read_resource", {"server": "lib", "uri": "file:///a.png"}))
    assert [block.mime for block in read.content if isinstance(block, Image)] == ["image/png"]


def test_a_server_without_any_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no MCP server 'plain' with resources; there are: lib"):
        used(tmp_path, ("mcp__read_resource", {"server": "plain", "uri": "x"}))
