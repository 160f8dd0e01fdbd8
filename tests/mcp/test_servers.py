"""All servers together: what the model is offered, and what happens when one is missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from limpet.errors import ArgumentsError
from limpet.mcp.kept import Records
from limpet.mcp.servers import Servers
from limpet.mcp.spec import ServerSpec
from limpet.mcp.tool import ServerPolicy, ServerTool
from limpet.sandbox.run import Sandbox
from limpet.testing.clock import FakeClock
from limpet.testing.context import tool_context
from limpet.testing.mcp import FakeServer
from limpet.tools.policy import BuiltinPolicy

T = TypeVar("T")


def spec_for(
    name: str, fake: FakeServer, *, allow: tuple[str, ...] = (), read_only: tuple[str, ...] = ()
) -> ServerSpec:
    return ServerSpec(name=name, command=fake.command, args=fake.args, allow=allow, read_only=read_only)


def together(
    folder: Path, specs: list[ServerSpec], use: Callable[[Servers], Awaitable[T]], *, wait: float = 20
) -> tuple[T, list[str]]:
    """What `use` gives, and what the owner was warned of."""
    warned: list[str] = []

    async def run() -> T:
        servers = Servers(specs, Records(folder), clock=FakeClock())
        try:
            await servers.learn(wait=wait, warn=warned.append)
            return await use(servers)
        finally:
            await servers.close()

    return asyncio.run(run()), warned


async def tools(servers: Servers) -> tuple[ServerTool, ...]:
    return servers.tools


def test_tools_of_all_stand_in_order_under_names_of_their_own(tmp_path: Path) -> None:
    b, a = FakeServer(tmp_path / "b", ["z", "read_file"]), FakeServer(tmp_path / "a", ["read_file"])
    found, _ = together(tmp_path, [spec_for("b", b), spec_for("a", a)], tools)
    assert [tool.spec.name for tool in found] == ["mcp_a_read_file", "mcp_b_read_file", "mcp_b_z"]


def test_a_known_list_needs_no_start(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "a", ["echo"])
    first, _ = together(tmp_path, [spec_for("a", fake)], tools)
    again, _ = together(tmp_path, [spec_for("a", fake)], tools)
    assert [tool.spec for tool in first] == [tool.spec for tool in again]
    assert len(fake.pids) == 1


def test_one_that_hangs_or_fails_is_told_of_and_the_others_are_there(tmp_path: Path) -> None:
    good, slow = FakeServer(tmp_path / "g", ["echo"]), FakeServer(tmp_path / "h", hang=True)
    bad = FakeServer(tmp_path / "b", exit=1)
    together(tmp_path, [spec_for("good", good)], tools)
    specs = [spec_for("bad", bad), spec_for("good", good), spec_for("slow", slow)]
    found, warned = together(tmp_path, specs, tools, wait=2)
    assert [tool.server for tool in found] == ["good"]
    assert [line.split(" are missing")[0] for line in warned] == [
        "The tools of the MCP server bad",
        "The tools of the MCP server slow",
    ]
    _, warned = together(tmp_path, [spec_for("bad", bad)], tools)
    assert "limpet mcp test" in warned[0]
    assert len(bad.pids) == 1


def test_who_may_run_unasked_is_the_owners_word(tmp_path: Path) -> None:
    hinted = {"name": "look", "annotations": {"readOnlyHint": True}}
    fake = FakeServer(tmp_path / "a", ["change", "echo", hinted])
    specs = [
        spec_for("all", fake, allow=("*",)),
        spec_for("hint", fake, read_only=("*",)),
        spec_for("none", fake),
        spec_for("some", fake, allow=("echo",)),
    ]
    found, _ = together(tmp_path, specs, tools)
    policy = ServerPolicy(BuiltinPolicy(Sandbox()))
    allowed = [
        tool.spec.name
        for tool in found
        if policy.decide(tool, tool.bind("{}", workspace=str(tmp_path))).decision == "allow"
    ]
    assert allowed == ["mcp_all_change", "mcp_all_echo", "mcp_all_look", "mcp_hint_look", "mcp_some_echo"]
    assert [tool.effect for tool in found if tool.server == "hint"] == ["unsafe", "unsafe", "pure"]


def test_a_call_names_its_plan_and_gives_the_result(tmp_path: Path) -> None:
    fake = FakeServer(tmp_path / "a", ["echo"])

    async def use(servers: Servers) -> str:
        (tool,) = servers.tools
        bound = tool.bind('{"context": 1, "name": "x"}', workspace=str(tmp_path))
        assert bound.plan() == 'mcp_a_echo context=1 name="x"'
        return (await bound.run(tool_context(tmp_path / "w"))).text

    text, _ = together(tmp_path, [spec_for("a", fake)], use)
    assert '{"context": 1, "name": "x"}' in text


def test_arguments_that_do_not_fit_are_not_sent(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}}
    fake = FakeServer(tmp_path / "a", [{"name": "echo", "inputSchema": schema}])

    async def use(servers: Servers) -> None:
        (tool,) = servers.tools
        assert json.loads(bytes(tool.spec.parameters)) == schema
        with pytest.raises(ArgumentsError, match="n: expected"):
            tool.bind('{"n": "x"}', workspace=str(tmp_path))

    together(tmp_path, [spec_for("a", fake)], use)
