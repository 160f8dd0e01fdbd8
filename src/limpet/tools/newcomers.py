"""Files that steer the agent and that a sandboxed command has made: moved to the trash, for no policy saw them.

Those that are there when a command starts it sees read-only; a name that is not there yet cannot be kept from it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from limpet.errors import ToolError
from limpet.sandbox.run import Job
from limpet.tools.files_write import to_trash
from limpet.tools.paths import Root
from limpet.tools.protected import FILES, FOLDERS

log = logging.getLogger(__name__)


def absent(job: Job) -> frozenset[str]:
    """The names that no command may make and that are not taken yet."""
    if job.place != "sandbox":
        return frozenset()
    return frozenset(name for name in (*FILES, *FOLDERS) if not os.path.lexists(os.path.join(job.workspace, name)))


def put_away(job: Job, names: frozenset[str], *, key: str) -> list[str]:
    """Move what there is now of `names` to the trash of the call `key`; gives those that were moved."""
    moved: list[str] = []
    for name in sorted(one for one in names if os.path.lexists(os.path.join(job.workspace, one))):
        try:
            with Root(job.workspace) as root:
                to_trash(root, root.target(name, link_itself=True), key=key)
            moved.append(name)
        except ToolError as error:
            log.warning("%s, which a command has made, could not be moved away: %s", name, error)
    return moved


def watch(job: Job) -> Callable[[str], str]:
    """For what runs commands elsewhere, before `job` starts. What it gives is called afterwards, with the key of the
    call, and says what was moved."""
    names = absent(job)

    def after(key: str) -> str:
        moved = put_away(job, names, key=key)
        return told(moved) if moved else ""

    return after


def told(moved: list[str]) -> str:
    """What the model is told of it."""
    return (
        f"[{', '.join(moved)} steers later conversations: commands cannot make it, it is in the trash. Use write_file.]"
    )
