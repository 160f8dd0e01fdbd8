"""Which other conversations one may look into (FEATURES C5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from limpet.session import keys
from limpet.store.sessions import SessionRow

Visibility = Literal["self", "tree", "agent", "all"]
"""Itself (earlier ones under its key included), also its forks and helpers, all of its agent, or all there are."""

_OF_OTHERS: tuple[keys.Kind, ...] = ("direct", "group", "thread", "api", "hook")
"""Kinds of conversations in which other people than the owner may speak: they never reach beyond their tree."""


def is_of_others(key: str) -> bool:
    """Whether other people than the owner may speak under a session key."""
    return keys.kind_of(key) in _OF_OTHERS


def reachable(rows: Sequence[SessionRow], own: SessionRow, visibility: Visibility) -> list[SessionRow]:
    """Those of `rows` that the conversation `own` may look into, in their order."""
    if is_of_others(own.key) and visibility in ("agent", "all"):
        visibility = "tree"
    match visibility:
        case "all":
            return list(rows)
        case "agent":
            return [row for row in rows if row.agent == own.agent]
        case "tree":
            return _tree(rows, own)
        case "self":
            return [row for row in rows if row.key == own.key]


def _tree(rows: Sequence[SessionRow], own: SessionRow) -> list[SessionRow]:
    """The conversation, and all that come from it."""
    found = {row.id for row in rows if row.key == own.key or row.key.startswith(f"{own.key}:subagent:")}
    children: dict[str, list[str]] = {}
    for row in rows:
        children.setdefault(row.parent, []).append(row.id)
    waiting = list(found)
    while waiting:
        fresh = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(fresh)
        waiting += fresh
    return [row for row in rows if row.id in found]
