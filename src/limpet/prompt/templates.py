"""The Markdown files that come with the package."""

from __future__ import annotations

import os
from contextlib import suppress

from limpet.errors import WorkspaceError

FOLDER = os.path.join(os.path.dirname(__file__), "templates")

WORKSPACE_FILES = (
    "AGENTS.md",
    "SOUL.md",
    "USER.md",
    "IDENTITY.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "MEMORY.md",
    "BOOTSTRAP.md",
)


def template(name: str) -> str:
    """The text of `templates/NAME.md`, without the line break at its end."""
    with open(os.path.join(FOLDER, f"{name}.md"), encoding="utf-8") as file:
        return file.read().rstrip("\n")


def workspace_template(file: str) -> str:
    """The text with which `file` (such as `SOUL.md`) begins in a new workspace."""
    return template("workspace/" + file.removesuffix(".md"))


def seed_workspace(workspace: str, *, bootstrap: bool) -> list[str]:
    """Write the files that are missing and never touch one that is there; gives the names written.

    `bootstrap` (BOOTSTRAP.md too) is for a brand-new workspace only. Raises `WorkspaceError`; a file that could not
    be written whole is not left there, so that the next start writes it.
    """
    written: list[str] = []
    for name in WORKSPACE_FILES:
        if name == "BOOTSTRAP.md" and not bootstrap:
            continue
        if _write(os.path.join(workspace, name), workspace_template(name) + "\n"):
            written.append(name)
    for name in ("memory", "skills"):
        with suppress(OSError):  # what cannot be made now is made by whoever writes there
            os.mkdir(os.path.join(workspace, name))
    return written


def _write(path: str, text: str) -> bool:
    """Write a new file; False when there is one."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                os.unlink(path)
                raise
    except FileExistsError:
        return False
    except OSError as error:
        raise WorkspaceError(
            f"{path} cannot be written: {error.strerror}.", hint="Make room there, or choose another workspace."
        ) from None
    return True
