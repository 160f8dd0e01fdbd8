"""The rules of policy in words."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from limpet.config.schema import RuleSettings

DEFAULTS = (
    ("danger", "asks before commands that wipe, format, shut down, rewrite history or touch credentials, always"),
    ("credentials", "asks before file tools touch a file that holds credentials, always"),
    ("taint", "with strangers' words in the conversation: asks before what could carry something out or stay"),
    ("no sandbox", "asks before any command where commands cannot be isolated"),
    ("host", "asks before a command outside the sandbox"),
    ("mcp", "asks before tools of MCP servers that may change something, unless the server's settings allow them"),
    ("unsafe", "asks before other tools that may change things outside the workspace"),
    ("default", "allows the rest"),
)
"""What holds where no rule of the owner's says otherwise: name, and what it does."""


def described(rules: Sequence[RuleSettings]) -> list[tuple[str, str]]:
    """Name of each rule of the owner's, and what it says."""
    return [(rule.name or f"policy.rules.{number}", _said(rule)) for number, rule in enumerate(rules, 1)]


def _said(rule: RuleSettings) -> str:
    plain = msgspec.to_builtins(rule)
    given = [
        f"{name} = {json.dumps(value)}" for name, value in plain.items() if value and name not in ("decision", "name")
    ]
    return f"{rule.decision}: {', '.join(given)}"
