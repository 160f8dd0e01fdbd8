"""SOUL.md says who the agent is: that a tool has changed it is always told to the owner, by code."""

from __future__ import annotations

import os

from limpet.tools.protected import leads_to
from limpet.types.tool import FileIntent

SOUL = "SOUL.md"


def changes_soul(workspace: str, intent: FileIntent) -> bool:
    """Whether what a call was about to do changes SOUL.md, by whatever name."""
    root = os.path.realpath(workspace)
    return any(one.before != one.after and _is_soul(root, one.path) for one in intent.each)


def _is_soul(root: str, path: str) -> bool:
    return os.path.relpath(path, root).casefold() == SOUL.casefold() or leads_to(root, path) == SOUL
