"""Names under which models are told of the tools of servers: `mcp_<server>_<tool>`, the same after every restart.

Services take `[a-zA-Z0-9_-]{1,64}`. The server's part holds no `_`, so that no two pairs make the same name; what had
to be changed or cut ends in a hash of the pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

PREFIX = "mcp_"
"""No built-in tool begins so."""
LONGEST = 64
_HASH = 8


def server_parts(servers: Iterable[str]) -> Mapping[str, str]:
    """The part of each server's tools' names that stands for the server."""
    names = set(servers)
    # `my_server` is plainly `my-server`, unless there is one of that name as well.
    return {name: _plain(name) if _plain(name) == name or _unique(name, names) else _hashed(name, 24) for name in names}


def tool_name(part: str, server: str, tool: str) -> str:
    """The name of the tool `tool` of `server`, whose `part` is that of `server_parts`."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", tool)
    name = f"{PREFIX}{part}_{plain}"
    if plain == tool and len(name) <= LONGEST:
        return name
    pair = f"{server}\0{tool}"
    return f"{name[: LONGEST - _HASH - 1]}_{_digest(pair)}"


def _plain(server: str) -> str:
    return re.sub(r"[^a-zA-Z0-9-]", "-", server)[:24] or "-"


def _unique(server: str, servers: set[str]) -> bool:
    return not any(other != server and _plain(other) == _plain(server) for other in servers)


def _hashed(server: str, longest: int) -> str:
    return f"{_plain(server)[: longest - _HASH - 1]}-{_digest(server)}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
