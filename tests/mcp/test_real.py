"""Real servers, where they are installed: the reference ones for Python and for Node.

    pip install mcp-server-time mcp-server-git mcp-server-fetch
    npm install @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem \
        @modelcontextprotocol/server-memory

They are looked for in PATH and in the folders of `LIMPET_TEST_MCP` (separated by colons), and skipped where missing.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.mcp.kept import Records
from limpet.mcp.servers import Servers
from limpet.mcp.spec import ServerSpec
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.types.content import Image
from limpet.types.tool import ToolResult

PATH = f"{os.environ.get('LIMPET_TEST_MCP', '')}:{os.environ['PATH']}"


def server(kind: str, *args: str, **env: str) -> ServerSpec:
    found = shutil.which(f"mcp-server-{kind}", path=PATH)
    if found is None:
        pytest.skip(f"mcp-server-{kind} is not installed")
    variables = {"PATH": PATH, "HOME": os.environ.get("HOME", "/"), **env}
    return ServerSpec(name=kind, command=found, args=args, env=variables)


def use(folder: Path, spec: ServerSpec, *calls: tuple[str, dict[str, object]]) -> list[ToolResult]:
    """The results of calls of tools, by their own names."""

    async def run() -> list[ToolResult]:
        servers = Servers([spec], Records(folder / "mcp"), clock=FakeClock())
        try:
            await servers.learn(wait=60, warn=pytest.fail)
            tools = {tool.spec.name.removeprefix(f"mcp_{spec.name}_"): tool for tool in servers.tools}
            return [
                await tools[name].bind(json.dumps(given), workspace=str(folder)).run(tool_context(folder))
                for name, given in calls
            ]
        finally:
            await servers.close()

    return asyncio.run(run())


def test_time(tmp_path: Path) -> None:
    (now,) = use(tmp_path, server("time"), ("get_current_time", {"timezone": "Europe/Berlin"}))
    assert '"timezone": "Europe/Berlin"' in now.text


def test_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "g")], check=True)
    (status,) = use(tmp_path, server("git"), ("git_status", {"repo_path": str(tmp_path / "g")}))
    assert "No commits yet" in status.text


def test_fetch_says_what_it_cannot_reach(tmp_path: Path) -> None:
    (refused,) = use(tmp_path, server("fetch"), ("fetch", {"url": "http://127.0.0.1:9/"}))
    assert refused.is_error


def test_filesystem(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("barnacle")
    path = str(tmp_path / "a.txt")
    (read,) = use(tmp_path, server("filesystem", str(tmp_path)), ("read_text_file", {"path": path}))
    assert "barnacle" in read.text


def test_memory(tmp_path: Path) -> None:
    entity = {"name": "limpet", "entityType": "animal", "observations": ["holds on"]}
    spec = server("memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json"))
    _, graph = use(tmp_path, spec, ("create_entities", {"entities": [entity]}), ("read_graph", {}))
    assert "holds on" in graph.text


def test_everything_gives_pictures_structures_links_and_resources(tmp_path: Path) -> None:
    address = "demo://resource/dynamic/text/1"
    picture, numbers, links, listed, read = use(
        tmp_path,
        server("everything"),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-resource-links", {"count": 2}),
        ("mcp__list_resources", {}),
        ("mcp__read_resource", {"server": "everything", "uri": address}),
    )
    assert [block.mime for block in picture.content if isinstance(block, Image)] == ["image/png"]
    assert "humidity" in numbers.text
    assert links.text.count("[resource ") == 2
    assert "pattern demo://resource/dynamic/text/{resourceId}" in listed.text
    assert address in read.text


def test_everything_says_prompts_and_tells_of_progress(tmp_path: Path) -> None:
    spec, told = server("everything"), list[str]()

    async def run() -> str:
        servers = Servers([spec], Records(tmp_path / "mcp"), clock=FakeClock())
        try:
            await servers.learn(wait=60, warn=pytest.fail)
            (tool,) = [tool for tool in servers.tools if tool.spec.name.endswith("trigger-long-running-operation")]
            context = tool_context(tmp_path)
            call = tool.bind('{"duration": 0.2, "steps": 2}', workspace=str(tmp_path))
            await call.run(replace(context, progress=told.append))
            return (await servers.prompts.text("everything.args-prompt", "city=Berlin state=BE"))[0]
        finally:
            await servers.close()

    assert asyncio.run(run()) == "What's weather in Berlin, BE?"
    assert any("of 2" in line for line in told)
