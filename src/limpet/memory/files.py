"""Which files the memory of a workspace is made of: the same for search, for the list and for forgetting."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from limpet.memory.scope import OTHERS, OWNERS, MemoryScope

TOP = ("MEMORY.md", "memory.md")
_EXCERPT = re.compile(r"\d{4}-\d\d-\d\d-\d{4}-[^/]+\.md")


class Seen(Struct, frozen=True):
    """A file as it lies there: when it was changed (ns) and its bytes."""

    path: str
    changed: int
    size: int


def memory_files(workspace: str) -> list[Seen]:
    """MEMORY.md, memory.md and the Markdown files below memory/, by path in the workspace; of several names of one file
    the first."""
    found: dict[tuple[int, int], Seen] = {}
    for name, state in sorted(_walked(workspace), key=lambda one: one[0]):
        found.setdefault((state.st_dev, state.st_ino), Seen(name, state.st_mtime_ns, state.st_size))
    return list(found.values())


def files_of(workspace: str, scope: MemoryScope) -> list[str]:
    """The names of the files in which `scope` remembers something, by path; of one file all names."""
    names = sorted(name for name, _ in _walked(workspace))
    if scope.name:
        return [name for name in names if name.startswith(f"{scope.folder}/")]
    return [name for name in names if not name.startswith(tuple(f"{folder}/" for folder in OTHERS))]


def _walked(workspace: str) -> Iterator[tuple[str, os.stat_result]]:
    """Ordinary files; links, and folders whose name begins with a dot, are left out."""
    for name in TOP:
        with suppress(OSError):
            state = os.lstat(os.path.join(workspace, name))
            if stat.S_ISREG(state.st_mode):
                yield name, state
    folders = [OWNERS.folder]
    while folders:
        folder = folders.pop()
        with suppress(OSError):
            if stat.S_ISLNK(os.lstat(os.path.join(workspace, folder)).st_mode):
                continue
            with os.scandir(os.path.join(workspace, folder)) as listing:
                found = list(listing)
            for one in found:
                name = f"{folder}/{one.name}"
                if one.is_dir(follow_symlinks=False) and not one.name.startswith("."):
                    folders.append(name)
                elif one.name.endswith(".md"):
                    with suppress(OSError):
                        state = one.stat(follow_symlinks=False)
                        if stat.S_ISREG(state.st_mode):
                            yield name, state


def is_memory_file(path: str) -> bool:
    """Whether a path in the workspace is one that `memory_files` may give."""
    *folders, last = path.split("/")
    if not folders:
        return path in TOP
    plain = not any(part.startswith(".") or not part for part in folders)
    return plain and folders[0] == OWNERS.folder and last.endswith(".md")


def is_record(path: str) -> bool:
    """Whether a file tells what was said, and its paragraphs are no entries: HISTORY.md, the end of a conversation."""
    name = path.rpartition("/")[2]
    return name == "HISTORY.md" or _EXCERPT.fullmatch(name) is not None
