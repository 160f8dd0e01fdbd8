"""Profiles: which tools there are, in four sizes. Names may be patterns; tools of MCP servers are `mcp_*`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import get_args

from limpet.config.schema import PolicySettings, ProfileName

_MINIMAL = ("ask", "goal", "plan", "respond")
_MESSAGING = (*_MINIMAL, "message", "session_*", "memory_*", "mcp_*", "tool_search", "call_tool")
_CODING = (
    *_MINIMAL,
    "session_*",
    "memory_*",
    "mcp_*",
    "read_file",
    "write_file",
    "edit_file",
    "apply_patch",
    "delete_path",
    "list_dir",
    "find_files",
    "grep",
    "exec",
    "process",
    "web_*",
    "make_image",
    "cron*",
    "skill*",
    "tool_search",
    "call_tool",
)
PROFILES: dict[ProfileName, tuple[str, ...]] = {
    "minimal": _MINIMAL,
    "messaging": _MESSAGING,
    "coding": _CODING,
    "full": ("*",),
}


_ELSEWHERE = ("browser",)
"""What only the full profile has of Limpet's own."""


def is_own(tool: str) -> bool:
    """Whether a name is Limpet's own, or kept for it: no plug-in may use it, in whatever case."""
    own = (*_MESSAGING, *_CODING, *_ELSEWHERE)
    return any(fnmatchcase(tool.lower(), pattern) for pattern in own)


def has(profile: ProfileName, tool: str) -> bool:
    """Whether a profile has a tool."""
    return any(fnmatchcase(tool, pattern) for pattern in PROFILES[profile])


def offered(settings: PolicySettings, agent: str) -> tuple[ProfileName, ...]:
    """The profiles that decide which tools an agent has at all: each only narrows."""
    return tuple({settings.profile, settings.agents.get(agent, "full")})


def missing_in(profiles: Iterable[ProfileName], tool: str) -> str:
    """The first profile that does not have a tool; empty when all have it."""
    return next((one for one in sorted(profiles, key=get_args(ProfileName).index) if not has(one, tool)), "")
