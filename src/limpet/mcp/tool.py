"""A tool of a server, as the port `Tool`; and who may run it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limpet.mcp.kept import Listed
from limpet.mcp.results import result_of
from limpet.mcp.server import Server
from limpet.toolkit.jsonschema import check_arguments
from limpet.toolkit.schema import exact_plan
from limpet.types.ports import EVERYWHERE, BoundCall, Policy, Scope, Tool, ToolContext, Verdict
from limpet.types.tool import Effect, ToolResult, ToolSpec

_DESCRIPTION = 2_000
"""Characters of a description that reach the prompt: it is a stranger's text, and paid for in every request."""


class ServerCall:
    """A call with arguments that fit the server's own schema."""

    def __init__(self, server: Server, listed: Listed, name: str, *, values: Mapping[str, object]) -> None:
        self._server = server
        self._listed = listed
        self._name = name
        self.values = values
        self.writes: tuple[str, ...] = ()

    def plan(self) -> str:
        return exact_plan(self._name, self.values)

    async def run(self, context: ToolContext) -> ToolResult:
        """Raises `ToolError`."""
        answer = await self._server.call(self._listed.name, self.values, progress=context.progress)
        return await result_of(answer, context, spec=self._server.spec, tool=self._listed.name)


class ServerTool:
    """Implements the port `Tool`. `name` is the one of `names.tool_name`."""

    exclusive = False

    def __init__(self, server: Server, listed: Listed, name: str) -> None:
        self._server = server
        self._listed = listed
        description = " ".join(listed.description.split())
        if len(description) > _DESCRIPTION:
            description = f"{description[:_DESCRIPTION]}…"
        self.spec = ToolSpec(name, description or f"{listed.name} of {server.spec.name}", listed.schema)

    @property
    def server(self) -> str:
        return self._server.spec.name

    @property
    def effect(self) -> Effect:
        """`unsafe`, unless the owner says that it changes nothing."""
        named = self._server.spec.read_only
        return "pure" if self._listed.name in named or ("*" in named and self._listed.read_only) else "unsafe"

    @property
    def allowed(self) -> bool:
        """Whether the owner lets it run unasked."""
        return "*" in self._server.spec.allow or self._listed.name in self._server.spec.allow

    def bind(self, arguments: str, *, workspace: str) -> ServerCall:
        """Raises `ArgumentsError`."""
        schema: object = msgspec.json.decode(self._listed.schema)
        values = check_arguments(self.spec.name, arguments, schema)
        return ServerCall(self._server, self._listed, self.spec.name, values=values)


class ServerPolicy:
    """Implements the port `Policy`: decides on tools of servers, leaves all others to `policy`."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def decide(self, tool: Tool, call: BoundCall, scope: Scope = EVERYWHERE) -> Verdict:
        if not isinstance(tool, ServerTool):
            return self._policy.decide(tool, call, scope)
        if tool.allowed or tool.effect == "pure":
            return Verdict("allow", rule="mcp")
        return Verdict("ask", f"the MCP server {tool.server} may change things outside the workspace", rule="mcp")
