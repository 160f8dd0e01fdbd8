"""Files that can be named with `@`: those of the current folder and of the workspace, found by a few of their letters.

Ignore files are honoured. Looking goes on for a bounded time in a thread, and is done again when it is half a minute
old, so that a tree of 50,000 files costs nothing between two keys.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from heapq import nsmallest

from limpet.tools.walk import walk

LONGEST, MOST = 2.0, 200_000
"""Seconds and files after which looking ends."""
FRESH = 30.0
"""Seconds for which what was found is used."""
OFFERED = 40


class Files:
    """The files beneath `here` by their path from there, those of another `workspace` by their whole path."""

    def __init__(self, here: str, workspace: str) -> None:
        inside = os.path.realpath(workspace) == os.path.realpath(here)
        self._roots = [(here, "")] + ([] if inside else [(workspace, f"{workspace.rstrip('/')}/")])
        self._found: list[str] = []
        self._looked = float("-inf")
        self._looking = asyncio.Lock()

    async def matching(self, letters: str) -> list[str]:
        """The paths that fit best, best first."""
        async with self._looking:
            if time.monotonic() - self._looked > FRESH:
                self._found = await asyncio.to_thread(find, self._roots)
                self._looked = time.monotonic()
        return await asyncio.to_thread(best, letters, self._found)


def find(roots: Sequence[tuple[str, str]]) -> list[str]:
    """The files beneath each folder, each path after the prefix of its folder."""
    found: list[str] = []
    ends = time.monotonic() + LONGEST
    for folder, prefix in roots:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            for _, _, path in walk(descriptor):
                if path.isprintable():
                    found.append(prefix + path)
                if len(found) >= MOST or time.monotonic() > ends:
                    return found
        finally:
            os.close(descriptor)
    return found


def best(letters: str, paths: Sequence[str], *, limit: int = OFFERED) -> list[str]:
    """The paths that hold `letters` in this order: in the name before in the path, together before apart, short first.

    Upper case counts where it was typed.
    """
    if not letters:
        return nsmallest(limit, paths, key=lambda path: (path.count("/"), path))
    fold = letters == letters.lower()
    ranked: list[tuple[int, int, str]] = []
    apart: list[str] = []
    for path in paths:
        where = path.lower() if fold else path
        at = where.rfind(letters)
        if at < 0:
            apart.append(path)
            continue
        name = where.rfind("/") + 1
        rank = 0 if at == name else 1 if at > name else 2
        ranked.append((rank, len(path), path))
    if len(ranked) < limit:
        pattern = re.compile(".*?".join(map(re.escape, letters)), re.IGNORECASE if fold else 0)
        ranked += [(3 + (hit.end() - hit.start()), len(path), path) for path in apart if (hit := pattern.search(path))]
    return [path for _, _, path in nsmallest(limit, ranked)]
