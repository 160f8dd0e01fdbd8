"""What steers the agent: files of the workspace that commands cannot write, and that strangers' words must not reach.

The agent changes them with its file tools, where each change is one that policy saw.
"""

from __future__ import annotations

import os
import stat
import unicodedata

from limpet.toolkit.unseen import is_unseen

FILES = (
    "AGENTS.md",
    "SOUL.md",
    "USER.md",
    "IDENTITY.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "MEMORY.md",
    "memory.md",
    "BOOTSTRAP.md",
)
FOLDERS = ("memory", "skills", ".agents")


def is_protected(relative: str) -> bool:
    """Whether a path below the workspace steers the agent; the AGENTS.md of any folder does.

    Neither case counts, nor which of several forms a character has, nor what is unseen: not every file system
    tells such names apart.
    """
    parts = _folded(relative).split(os.sep)
    return "/".join(parts) in _FOLDED or parts[0] in FOLDERS or parts[-1] == "agents.md"


def _folded(name: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", name).casefold() if not is_unseen(one))


_FOLDED = frozenset(map(str.casefold, FILES))


def leads_to(workspace: str, path: str) -> str:
    """The protected file that `path` is another name of, by a link of either kind; empty when it is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    for name in FILES:
        try:
            if os.path.samestat(status, os.stat(os.path.join(workspace, name))):
                return name
        except OSError:
            continue
    return ""


def present(workspace: str) -> tuple[str, ...]:
    """The absolute paths of those that are there; for a link, of what it leads to in the workspace."""
    root = os.path.realpath(workspace)
    found: list[str] = []
    for name in (*FILES, *FOLDERS):
        path = os.path.join(workspace, name)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            found.append(path)
        elif stat.S_ISLNK(mode) and (real := os.path.realpath(path)).startswith(root + "/") and os.path.exists(real):
            found.append(real)
    return tuple(found)
