"""Finding skills: the places in their order, the folders in them, links that lead out of a place left alone."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from limpet.skills.front_matter import split, tool_of
from limpet.skills.fronts import Fronts
from limpet.skills.skill import FILE, Fault, Origin, Skill, ToolFile

BUNDLED = os.path.join(os.path.dirname(__file__), "bundled")
LARGEST = 1_000_000
"""Bytes of a SKILL.md, or of the description of a tool."""
_DEEPEST = 3
"""Folders below a place in which skills may lie."""
_MOST = 300
"""Skills of one place."""


class Place(Struct, frozen=True):
    """A folder with skills. `base` is what its own links must not lead out of; empty: it may be a link anywhere."""

    origin: Origin
    path: str
    base: str = ""


class Found(Struct, frozen=True):
    """Skills in the order of their places, of one name only the first; the others are `shadowed`."""

    skills: tuple[Skill, ...]
    shadowed: tuple[Skill, ...] = ()
    faults: tuple[Fault, ...] = ()


def places(workspace: str, home: Path, *, own: str, extra: Sequence[str] = (), bundled: bool = True) -> list[Place]:
    """Where skills are looked for, in the order of precedence. `own` is the user's own folder."""
    found = [
        Place("workspace", os.path.join(workspace, "skills"), workspace),
        Place("agents", os.path.join(workspace, ".agents", "skills"), workspace),
        Place("user", os.path.join(own, ".agents", "skills")),
        Place("home", str(home / "skills")),
    ]
    found += [Place("bundled", BUNDLED)] if bundled else []
    return found + [Place("extra", os.path.abspath(os.path.expanduser(path))) for path in extra]


def discover(where: Iterable[Place], fronts: Fronts, *, workspace: str) -> Found:
    """All skills of the places. Never raises: what is wrong with them are faults."""
    faults: list[Fault] = []
    skills: dict[str, Skill] = {}
    shadowed: list[Skill] = []
    for place in where:
        for folder in _folders(place, faults):
            skill = _skill(place, folder, fronts, faults=faults, workspace=workspace)
            if skill is None:
                continue
            if skill.name in skills:
                shadowed.append(skill)
            else:
                skills[skill.name] = skill
    fronts.save()
    return Found(tuple(skills.values()), tuple(shadowed), tuple(faults))


def _folders(place: Place, faults: list[Fault]) -> list[str]:
    """The real paths of the folders that hold a SKILL.md, by name."""
    root = os.path.realpath(place.path)
    if place.base and not is_below(root, os.path.realpath(place.base)):
        faults.append(Fault(place.path, 0, "This is a link out of the workspace.", "It was left out."))
        return []
    found = list(_walk(root, root, faults, depth=0))
    if len(found) > _MOST:
        faults.append(Fault(place.path, 0, f"There are {len(found)} skills.", f"The first {_MOST} are read."))
    return found[:_MOST]


def _walk(root: str, folder: str, faults: list[Fault], *, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as items:
            names = sorted(item.name for item in items if item.is_dir() and not item.name.startswith("."))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        if not is_below(real, root):
            faults.append(Fault(path, 0, "This link leads out of its folder.", "Copy the skill instead of linking it."))
        elif os.path.lexists(os.path.join(real, FILE)):
            yield real
        elif depth + 1 < _DEEPEST and not os.path.islink(path):
            yield from _walk(root, path, faults, depth=depth + 1)


def is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/") or path == root


def _skill(place: Place, folder: str, fronts: Fronts, *, faults: list[Fault], workspace: str) -> Skill | None:
    path = os.path.join(folder, FILE)
    try:
        data = read_file(path, root=folder)
    except OSError as error:
        faults.append(Fault(path, 0, f"It cannot be read: {error.strerror or error}.", "It was left out."))
        return None
    text = data.decode("utf-8-sig", "replace").replace("\0", "\ufffd").strip()
    head, body = split(text)
    front = fronts.read(head)
    faults += [Fault(path, one.line, one.text, one.remedy) for one in front.problems]
    base = os.path.basename(folder)
    name = front.name
    if not name:
        faults.append(Fault(path, 1, "The skill has no usable name and is left out.", f"Write `name: {base}`, or so."))
        return None
    if name != base:
        faults.append(Fault(path, 0, f"The folder is {base!r} and the skill {name!r}.", "Give both one name."))
    first = next((line.strip("# ").strip() for line in body.splitlines() if line.strip("# ").strip()), "")
    real = os.path.realpath(workspace)
    inside = place.origin in ("workspace", "agents") and is_below(folder, real)
    return Skill(
        name=name,
        description=front.description or first[:1_024],
        origin=place.origin,
        folder=folder,
        location=os.path.relpath(path, real) if inside else path,
        body=body,
        sha256=hashlib.sha256(data).hexdigest(),
        front=front,
        tools=(*front.tools, *_tool_files(folder, faults)),
    )


def _tool_files(folder: str, faults: list[Fault]) -> Iterator[ToolFile]:
    """The tools that `tools/*.json` describe."""
    place = os.path.join(folder, "tools")
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(".json"))
    except OSError:
        return
    for name in names[:50]:
        path = os.path.join(place, name)
        try:
            given: object = json.loads(read_file(path, root=folder))
            yield tool_of(given)
        except (OSError, ValueError, RecursionError) as error:
            faults.append(Fault(path, 0, f"This tool is left out: {error}.", "See docs/skills.md for its fields."))


def read_file(path: str, *, root: str) -> bytes:
    """The bytes of a regular file whose real path is below `root`. Raises `OSError`."""
    real = os.path.realpath(path)
    if not is_below(real, os.path.realpath(root)):
        raise OSError("it is a link out of its folder")
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is not a regular file")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(f"it has over {LARGEST:,} bytes")
    return data
