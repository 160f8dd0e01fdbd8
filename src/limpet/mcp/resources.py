"""Resources of servers, as two tools: one lists them, one reads one. What they hold is written by strangers.

Their names hold an empty server's part, so no tool of a server can have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from limpet.errors import ToolError
from limpet.mcp.results import listed_result, read_result
from limpet.mcp.sdk import Connection, Offer
from limpet.mcp.server import Server
from limpet.toolkit.schema import FunctionTool, tool
from limpet.types.ports import ToolContext
from limpet.types.tool import ToolResult

_DESCRIPTION = 300
"""Characters of a description that are shown."""


def resource_tools(servers: Callable[[], Sequence[Server]]) -> tuple[FunctionTool, ...]:
    """The tools over `servers`, which gives those that have resources."""

    def find(name: str) -> Server:
        found = next((one for one in servers() if one.spec.name == name), None)
        if found is None:
            known = ", ".join(one.spec.name for one in servers()) or "none"
            raise ToolError(f"There is no MCP server {name!r} with resources; there are: {known}.")
        return found

    @tool(effect="pure", rare=True)
    async def mcp__list_resources(
        context: ToolContext,
        server: Annotated[str, "the server's name; empty: the first of those that have any"] = "",
    ) -> ToolResult:
        """List what an MCP server has to read, and patterns of addresses whose {…} are to be filled in."""
        chosen = find(server or next((one.spec.name for one in servers()), ""))
        lines = [_line(offer) for offer in await chosen.within("resources/list", Connection.list_resources)]
        others = [one.spec.name for one in servers() if one is not chosen]
        text = "\n".join(lines) or "It has none at the moment."
        more = f"\nServers with others: {', '.join(others)}." if others and not server else ""
        return await listed_result(f"{text}{more}", context, spec=chosen.spec)

    @tool(effect="pure", rare=True)
    async def mcp__read_resource(
        context: ToolContext,
        server: Annotated[str, "the server's name"],
        uri: Annotated[str, "its address, as listed or after a listed pattern"],
    ) -> ToolResult:
        """Read a resource of an MCP server."""
        chosen = find(server)
        found = await chosen.within(f"reading {uri}", lambda connection: connection.read_resource(uri))
        return await read_result(found, context, spec=chosen.spec, uri=uri)

    return mcp__list_resources, mcp__read_resource


def _line(offer: Offer) -> str:
    kind = ", ".join(filter(None, (offer.mime, f"{offer.size:,} bytes" if offer.size is not None else "")))
    pattern = "pattern " if offer.template else ""
    about = " ".join(offer.description.split())[:_DESCRIPTION]
    return f"{pattern}{offer.uri}  {offer.name}{f' ({kind})' if kind else ''}{f': {about}' if about else ''}"
