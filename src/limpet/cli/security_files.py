"""Checks of `limpet security audit` that look at files: who may touch them, where they lie, what is in them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from limpet.cli.security import Check, Fix, Hole, Risk, Scene
from limpet.config.machine import file_system_of, is_network
from limpet.config.paths import own_folder
from limpet.config.secrets import SHORTEST, secret_settings
from limpet.skills.records import load
from limpet.skills.scan import scan
from limpet.skills.shelf import changes_of
from limpet.toolkit.unseen import hidden_in
from limpet.tools.protected import FILES, FOLDERS

MOST = 3_000
"""Files of one folder that are looked at."""
LARGEST = 1_000_000
"""Bytes of one file that are looked at."""
_SYNCED = re.compile(
    r"/(Dropbox|OneDrive[^/]*|Google ?Drive|iCloud[^/]*|Mobile Documents|Nextcloud|ownCloud|Sync|pCloud[^/]*)(/|$)"
)
_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
_ORDERS = re.compile(
    r"ignore (?:all |any )?(?:previous|prior|earlier) (?:instructions|rules)"
    r"|disregard (?:your|all) (?:rules|instructions)"
    r"|do not (?:tell|inform|mention (?:this )?to) the (?:user|owner)|<\|im_start\|>|\[INST\]|<system>",
    re.IGNORECASE,
)


def home_folder(scene: Scene) -> Iterator[Hole]:
    yield from _open_to_others(scene.home.root)


def config_file(scene: Scene) -> Iterator[Hole]:
    yield from _open_to_others(scene.home.config)


def secret_files(scene: Scene) -> Iterator[Hole]:
    for path in (*scene.home.root.glob("secrets*"), *_referenced(scene)):
        yield from _open_to_others(path, risk="critical")


def database_files(scene: Scene) -> Iterator[Hole]:
    for path in (*scene.home.root.glob("limpet.db*"), *scene.home.undo.parent.glob("*")):
        yield from _open_to_others(path)


def logs_and_copies(scene: Scene) -> Iterator[Hole]:
    home = scene.home
    for folder in (home.logs, home.mcp, home.archive, home.blobs, home.run):
        yield from _open_to_others(folder)


def files_of_others(scene: Scene) -> Iterator[Hole]:
    for path in (scene.home.root, scene.home.config, scene.home.database, scene.workspace):
        if path.exists() and path.stat().st_uid != scene.user:
            yield Hole("critical", f"{path} belongs to another user, who can change it", f"sudo chown -R $USER {path}")


def old_copies(scene: Scene) -> Iterator[Hole]:
    found = [path for pattern in ("*.bak*", "*.old", "*~", "*.orig") for path in scene.home.root.glob(pattern)]
    for path in found:
        yield Hole("note", f"{path} is an old copy, with all that was said or set then", f"Delete it: rm {path}")


def home_place(scene: Scene) -> Iterator[Hole]:
    for path in (scene.home.root, scene.workspace):
        place = next((one for one in (path, *path.parents) if one.exists()), path)
        if is_network(kind := file_system_of(place)):
            yield Hole("warning", f"{path} is on {kind}, which others may reach", "Move it to a local disk.")
        if found := _SYNCED.search(os.path.realpath(path)):
            text = f"{path} is in {found[1]}, which copies it to somebody's servers"
            yield Hole("warning", text, "Move it to a folder that is not synchronised.")


def workspace_place(scene: Scene) -> Iterator[Hole]:
    space, own, root = (
        Path(os.path.realpath(one)) for one in (scene.workspace, own_folder(scene.environ), scene.home.root)
    )
    remedy = "Give the agent a folder of its own: limpet config set agent.workspace PATH"
    if space == Path(space.anchor) or own.is_relative_to(space):
        yield Hole("critical", f"the workspace {space} is your whole home, or more", remedy)
    if root.is_relative_to(space):
        yield Hole("critical", f"the workspace {space} holds Limpet's own files ({root})", remedy)


def workspace_writers(scene: Scene) -> Iterator[Hole]:
    open_ones = [
        path for path in (scene.workspace, *_files(scene.workspace)) if _mode(path) & 0o022 and not path.is_symlink()
    ]
    for path in open_ones[:20]:
        yield Hole("warning", f"others may change {path}", f"chmod go-w {path}", fix=Fix(str(path), 0o022))


def workspace_secrets(scene: Scene) -> Iterator[Hole]:
    values = {name: value.encode() for name, value in scene.secrets.items() if len(value) >= SHORTEST}
    for path in _files(scene.workspace):
        data = _bytes(path)
        for name in (name for name, value in values.items() if value in data):
            yield Hole(
                "critical", f"the value of {name} stands in {path}", "Take it out, and set a new one: it was readable."
            )
        if _KEY.search(data):
            yield Hole(
                "warning", f"{path} is a private key, which every command can read", "Keep it outside the workspace."
            )


def kept_secrets(scene: Scene) -> Iterator[Hole]:
    """Logs and blobs are redacted when they are written; a value that was made a secret later may still be there."""
    values = {name: value.encode() for name, value in scene.secrets.items() if len(value) >= SHORTEST}
    for path in (
        *_files(scene.home.logs),
        *_files(scene.home.blobs),
        *_files(scene.home.archive),
        *_files(scene.home.undo.parent),
    ):
        for name in (name for name, value in values.items() if value in _bytes(path)):
            yield Hole("warning", f"the value of {name} stands in {path}", f"Delete {path}, and set a new value.")


def steering_files(scene: Scene) -> Iterator[Hole]:
    places = [scene.workspace / name for name in FILES]
    for path in (*places, *(path for name in FOLDERS for path in _files(scene.workspace / name))):
        text = _bytes(path).decode("utf-8", "replace")
        if hidden := hidden_in(text):
            said = ", ".join(f"{name} ({count} times)" for name, count in list(hidden.items())[:4])
            yield Hole("warning", f"{path} holds characters that nobody sees: {said}", "Look at it, and take them out.")
        if found := _ORDERS.search(text):
            yield Hole("warning", f"{path} says {found[0]!r}, as planted instructions do", "Read it, and take it out.")


def skills(scene: Scene) -> Iterator[Hole]:
    """What the scan finds in skills that anybody put there, and installed ones that are otherwise now."""
    for folder in (scene.workspace / "skills", scene.workspace / ".agents/skills", scene.home.root / "skills"):
        for finding in scan(str(folder)):
            risk: Risk = "critical" if finding.level == "danger" else "warning"
            yield Hole(
                risk, f"{folder / finding.path}: {finding.text}", "Read it; remove the skill if it is not yours."
            )
    for name, known in load(scene.home.root).installed.items():
        if changes := changes_of(known.folder, known.files):
            yield Hole("warning", f"the skill {name} is not as it was installed: {changes[0]}", "limpet skills check")


def links_out(scene: Scene) -> Iterator[Hole]:
    root = os.path.realpath(scene.workspace)
    links = [path for path in _entries(scene.workspace) if path.is_symlink()]
    for path in links[:20]:
        if not os.path.realpath(path).startswith(f"{root}/"):
            yield Hole(
                "note", f"{path} leads out of the workspace; tools do not follow it", "Remove it if it is not yours."
            )


def _open_to_others(path: Path, risk: Risk = "warning") -> Iterator[Hole]:
    mode = _mode(path)
    if not mode & 0o077:
        return
    worst: Risk = "critical" if mode & 0o022 else risk
    may = "change" if mode & 0o022 else "read"
    right = "700" if path.is_dir() else "600"
    yield Hole(worst, f"others may {may} {path}", f"chmod {right} {path}", fix=Fix(str(path)))


def _referenced(scene: Scene) -> Iterator[Path]:
    """Files that settings take secrets from."""
    for _, reference in secret_settings(scene.table):
        kind, _, name = reference.partition(":")
        if kind == "file":
            yield scene.home.root / Path(name.strip()).expanduser()


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _entries(folder: Path) -> Iterator[Path]:
    """What lies in `folder` and below, at most `MOST`; packages and histories left out."""

    def walk() -> Iterator[Path]:
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name not in (".git", "node_modules", ".venv", "__pycache__")]
            yield from (Path(place, name) for name in (*names, *folders))

    return islice(walk(), MOST)


def _files(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_file() and not path.is_symlink()]


def _bytes(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""


CHECKS: tuple[Check, ...] = (
    home_folder,
    config_file,
    secret_files,
    database_files,
    logs_and_copies,
    files_of_others,
    old_copies,
    home_place,
    workspace_place,
    workspace_writers,
    workspace_secrets,
    kept_secrets,
    steering_files,
    skills,
    links_out,
)
