"""Whose memory a conversation has, by its session key alone: the same for all of its turns (DESIGN 13)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from limpet.memory.scope import OWNERS, MemoryScope
from limpet.session import keys

_OF_PEOPLE = ("direct", "api")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")
OWNER = "owner"


def scope_of(key: str, bound: Mapping[str, Sequence[str]]) -> MemoryScope:
    """The memory of the conversation `key`: the owner's own, a person's, a group's, or the one it is `bound` to.

    `bound` lists, by a name, the keys without `agent:ID:` and without a thread that share one memory; those of the name
    `owner` share the owner's. A helper has the memory of who sent it.
    """
    key = key.split(":subagent:")[0]
    kind = keys.kind_of(key)
    parts = key.split(":", 2)
    rest = parts[2].split(":thread:")[0] if len(parts) > 2 else key
    for name, members in bound.items():
        if rest in members:
            return OWNERS if name == OWNER else MemoryScope(f"groups/{_folder(name)}")
    if kind in ("group", "thread"):
        return MemoryScope(f"groups/{_folder(rest.replace(':group:', '-', 1))}")
    if kind in _OF_PEOPLE:
        person = rest.rpartition(":")[0] if kind == "api" else rest.replace(":direct:", "-", 1).removeprefix("direct:")
        return MemoryScope(f"people/{_folder(person)}")
    return OWNERS


def scope_of_file(file: str) -> MemoryScope:
    """The memory that a file below the workspace belongs to."""
    parts = file.split("/")
    others = len(parts) > 3 and parts[0] == "memory" and parts[1] in ("people", "groups")
    return MemoryScope("/".join(parts[1:3])) if others else OWNERS


def _folder(name: str) -> str:
    """A folder's name for an id: plain ones as they are, others with a hash, so that no two are the same anywhere."""
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:40]
    return f"{plain}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:10]}".lstrip("-")
