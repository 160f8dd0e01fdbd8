"""The Markdown files that come with the package."""

from __future__ import annotations

import os

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

    `bootstrap` (BOOTSTRAP.md too) is for a brand-new workspace only. Raises `OSError`.
    """
    written: list[str] = []
    for name in WORKSPACE_FILES:
        if name == "BOOTSTRAP.md" and not bootstrap:
            continue
        try:
            with open(os.path.join(workspace, name), "x", encoding="utf-8") as file:
                file.write(workspace_template(name) + "\n")
        except FileExistsError:
            continue
        written.append(name)
    return written
