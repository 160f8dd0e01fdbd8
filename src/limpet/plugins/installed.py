"""Plug-ins that are installed: Python distributions with entry points for Limpet. Nothing of them is imported here."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, distributions
from pathlib import Path

from msgspec import Struct

TOOLS = "limpet.tools"
HOOKS = "limpet.hooks"
GROUPS = (TOOLS, HOOKS, "limpet.channels")
"""The groups of entry points by which a distribution is a plug-in."""
_CHANGING = frozenset(("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"))
"""Files that an installer writes: they say how it came here, not what it does."""
_CHUNK = 1 << 20


class Plugin(Struct, frozen=True):
    """An installed distribution. `entries` are its offers by group and name, `digest` the SHA-256 (hex) over its files,
    empty when they cannot be found."""

    name: str
    version: str
    entries: tuple[EntryPoint, ...]
    digest: str
    summary: str = ""

    def of(self, group: str) -> tuple[EntryPoint, ...]:
        return tuple(entry for entry in self.entries if entry.group == group)


def installed() -> tuple[Plugin, ...]:
    """All plug-ins on the import path, by name; of several of one name the first, which is the one that counts."""
    found: dict[str, Distribution] = {}
    for one in distributions():
        if _entries(one):
            found.setdefault(normal(one.name), one)
    return tuple(_plugin(found[name]) for name in sorted(found))


def find(name: str) -> Plugin | None:
    """The plug-in of that name; None when it is not installed or offers nothing."""
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    return _plugin(found) if _entries(found) else None


def normal(name: str) -> str:
    """A distribution's name in the one form that all its spellings have."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _plugin(found: Distribution) -> Plugin:
    entries = tuple(sorted(_entries(found), key=lambda entry: (entry.group, entry.name)))
    said = found.metadata.json.get("summary", "")
    return Plugin(normal(found.name), found.version, entries, _digest(found, entries), str(said))


def _entries(found: Distribution) -> list[EntryPoint]:
    return [entry for entry in found.entry_points if entry.group in GROUPS]


def _digest(found: Distribution, entries: Iterable[EntryPoint]) -> str:
    """Over all that it consists of: the files its installer listed, and those an import would really find, which for a
    distribution that is installed in editable form are others."""
    files: dict[str, Path] = {}
    for listed in found.files or ():
        if not _is_passing(Path(str(listed))):
            files[f"listed {listed}"] = Path(str(listed.locate()))
    for module in sorted({entry.module.partition(".")[0] for entry in entries}):
        code = dict(_code_of(module))
        if not code:
            return ""
        files |= code
    whole = hashlib.sha256()
    for name in sorted(files):
        try:
            whole.update(f"{name}\0{_hash(files[name])}\n".encode())
        except OSError:
            return ""
    return whole.hexdigest()


def _code_of(module: str) -> Iterator[tuple[str, Path]]:
    """The files of a top-level module as the import system finds it; looking it up imports nothing."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin and os.path.isfile(spec.origin):
            yield f"module {module}", Path(spec.origin)
        return
    for folder in spec.submodule_search_locations:
        for path in sorted(Path(folder).rglob("*")):
            inside = path.relative_to(folder)
            if path.is_file() and not _is_passing(inside):
                yield f"module {module}/{inside}", path


def _is_passing(path: Path) -> bool:
    """Whether a file comes and goes by itself: caches of the interpreter, notes of an installer."""
    return path.suffix == ".pyc" or (path.name in _CHANGING and path.parent.suffix == ".dist-info")


def _hash(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(_CHUNK):
            found.update(data)
    return found.hexdigest()
