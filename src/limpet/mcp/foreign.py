"""Servers out of the configurations of other programs, as they are: Claude Desktop and its like, OpenClaw, nanobot.

`{"mcpServers": {…}}`, `{"mcp": {"servers": {…}}}` and `{"tools": {"mcpServers": {…}}}`, as JSON with comments allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from limpet.config.schema import ServerSettings
from limpet.errors import InputError

_PLACES = (("mcpServers",), ("mcp", "servers"), ("tools", "mcpServers"), ("tools", "mcp_servers"), ("servers",))
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


class _Foreign(msgspec.Struct):
    """One server in their words; what is not here has no counterpart."""

    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    type: str = ""
    transport: str = ""
    disabled: bool = False
    enabled: bool = True
    toolTimeout: float = 0.0
    tool_timeout: float = 0.0
    enabledTools: list[str] | None = None
    enabled_tools: list[str] | None = None


def read_servers(text: str) -> tuple[dict[str, ServerSettings], list[str]]:
    """The servers that `text` describes by name, and what could not be taken over. Raises `InputError`."""
    try:
        table: object = msgspec.json.decode(_COMMENT.sub(lambda found: found[1] or "", text))
    except msgspec.DecodeError as error:
        raise InputError(f"This is no JSON: {error}.") from None
    found: dict[str, ServerSettings] = {}
    faults: list[str] = []
    for name, one in _servers(table).items():
        try:
            found[name] = _settings(msgspec.convert(one, _Foreign))
        except msgspec.ValidationError as error:
            faults.append(f"{name}: {error}")
            continue
        if not found[name].command and not found[name].url:
            del found[name]
            faults.append(f"{name}: it has neither a command nor a url")
        elif isinstance(one, dict) and "sse" in (one.get("type"), one.get("transport")):  # pyright: ignore[reportUnknownMemberType]
            del found[name]
            faults.append(f"{name}: the transport SSE is not spoken, only streamable HTTP")
    return found, faults


def _servers(table: object) -> Mapping[str, object]:
    for place in _PLACES:
        found: object = table
        for key in place:
            found = found.get(key) if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if isinstance(found, dict):
            return {str(name): one for name, one in found.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise InputError("No servers are named in it.", hint='Expected is an object "mcpServers", or "mcp" with "servers".')


def _settings(one: _Foreign) -> ServerSettings:
    wanted = one.enabledTools if one.enabledTools is not None else one.enabled_tools
    timeout = one.toolTimeout or one.tool_timeout
    return ServerSettings(
        command=one.command,
        args=tuple(one.args),
        env={key: _reference(value) for key, value in one.env.items()},
        cwd=one.cwd,
        url=one.url,
        headers={key: _reference(value) for key, value in one.headers.items()},
        enabled=one.enabled and not one.disabled,
        timeout=timeout if timeout > 0 else ServerSettings().timeout,
        tools=() if wanted is None or "*" in wanted else tuple(wanted),
    )


def _reference(value: str) -> str:
    """`${NAME}` as Limpet refers to a variable, everything else as it is."""
    whole = _VARIABLE.fullmatch(value.strip())
    return f"env:{whole[1]}" if whole else value
