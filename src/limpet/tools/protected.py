"""What steers the agent: files of the workspace that commands cannot write, and that strangers' words must not reach.

The agent changes them with its file tools, where each change is one that policy saw.
"""

from __future__ import annotations

import os
import stat

FILES = ("AGENTS.md", "SOUL.md", "USER.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "MEMORY.md", "memory.md")
FOLDERS = ("memory", "skills")


def is_protected(relative: str) -> bool:
    """Whether a path below the workspace steers the agent. Case does not matter: it does not on every file system."""
    first = relative.split(os.sep)[0].lower()
    return relative.lower() in {name.lower() for name in FILES} or first in FOLDERS


def present(workspace: str) -> tuple[str, ...]:
    """The absolute paths of those that are there, links left out."""
    found: list[str] = []
    for name in (*FILES, *FOLDERS):
        path = os.path.join(workspace, name)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            found.append(path)
    return tuple(found)
