"""Skills on disk, for tests."""

from __future__ import annotations

from pathlib import Path

from limpet.skills.discovery import Found, discover, places
from limpet.skills.fronts import Fronts
from limpet.skills.gates import Situation
from limpet.skills.shelf import Shelf

HERE = Situation(which=lambda name: "/bin/sh" if name == "sh" else None, platform="linux")


def skill(place: Path, name: str, text: str = "", *, body: str = "Do it.") -> Path:
    """A skill below `place`; `text` is its whole file where given."""
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text or f"---\nname: {name}\ndescription: About {name}.\n---\n{body}\n")
    return folder


def room(root: Path) -> tuple[Path, Path, Path]:
    """Workspace, home and the user's own folder."""
    folders = (root / "workspace", root / "home", root / "own")
    for folder in folders:
        folder.mkdir(exist_ok=True)
    return folders


def find(root: Path, *, extra: tuple[str, ...] = (), bundled: bool = False) -> Found:
    workspace, home, own = room(root)
    where = places(str(workspace), home, own=str(own), extra=extra, bundled=bundled)
    return discover(where, Fronts(home / "read.json"), workspace=str(workspace))


def shelf(root: Path, *, here: Situation = HERE, bundled: bool = False, disabled: tuple[str, ...] = ()) -> Shelf:
    workspace, home, own = room(root)
    where = places(str(workspace), home, own=str(own), bundled=bundled)
    return Shelf(where, home, workspace=str(workspace), here=here, disabled=disabled)
