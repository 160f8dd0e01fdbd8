"""All servers of this process, and their tools in the order in which models are told of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from limpet.errors import ToolError
from limpet.mcp.kept import Records
from limpet.mcp.names import server_parts, tool_name
from limpet.mcp.prompts import ServerPrompts
from limpet.mcp.resources import resource_tools
from limpet.mcp.server import Server
from limpet.mcp.spec import ServerSpec
from limpet.mcp.tool import ServerPolicy, ServerTool
from limpet.types.ports import Clock, Policy, Tool

log = logging.getLogger(__name__)

_FORGIVEN = 600_000
"""Milliseconds after which a server that never could be started is tried again at the start of a process."""


class Servers:
    """The servers of `specs`. Close them."""

    def __init__(self, specs: Sequence[ServerSpec], records: Records, *, clock: Clock) -> None:
        self._clock = clock
        self._servers = [Server(spec, records, clock=clock, changed=self._forget) for spec in specs]
        self._parts = server_parts(spec.name for spec in specs)
        self._tools: tuple[Tool, ...] | None = None
        self._resource_tools = resource_tools(lambda: [one for one in self._servers if one.has_resources])
        self.prompts = ServerPrompts(self._servers)
        self._learning: set[asyncio.Task[None]] = set()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools that are known now, by name; those that read resources where there are any."""
        if self._tools is None:
            named: dict[str, Tool] = {
                name: ServerTool(server, listed, name)
                for server in self._servers
                for listed in server.tools
                if (name := tool_name(self._parts[server.spec.name], server.spec.name, listed.name))
            }
            if any(server.has_resources for server in self._servers):
                named |= {tool.spec.name: tool for tool in self._resource_tools}
            self._tools = tuple(named[name] for name in sorted(named))
        return self._tools

    def policy(self, policy: Policy) -> Policy:
        """`policy`, and what the owner said of these tools."""
        return ServerPolicy(policy)

    async def learn(self, *, wait: float, warn: Callable[[str], None]) -> None:
        """Start those whose tools are not known, and wait at most `wait` seconds for them; `warn` is told the rest.

        One that failed a short while ago is left alone.
        """
        unknown: dict[asyncio.Task[None], Server] = {}
        for server in self._servers:
            if server.known:
                continue
            record = server.record
            if record.failure and self._clock.now() - record.failed_at < _FORGIVEN:
                warn(_without(server, f"it failed: {record.failure}. `limpet mcp test` tries it again"))
                continue
            unknown[asyncio.create_task(self._learn(server))] = server
        if not unknown:
            return
        self._learning |= set(unknown)
        _, late = await asyncio.wait(unknown, timeout=wait)
        for task, server in unknown.items():
            if task in late:
                warn(_without(server, "it is not ready yet; later conversations have them"))
            elif not server.known:
                warn(_without(server, server.spec.fault or server.record.failure))

    async def _learn(self, server: Server) -> None:
        try:
            await server.learn()
        except ToolError as error:
            log.warning("%s", error)

    def _forget(self) -> None:
        self._tools = None

    async def close(self) -> None:
        """End all of them, at the same time."""
        await asyncio.gather(*(server.close() for server in self._servers))
        if self._learning:
            await asyncio.wait(self._learning)


def _without(server: Server, why: str) -> str:
    return f"The tools of the MCP server {server.spec.name} are missing: {why}."
