"""Watching memory files, for processes that stay: what is written is in the index before somebody asks for it.

Needs the extra `watch`. Without it the index is brought up to date by whoever searches, which is enough.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from importlib.util import find_spec

from limpet.memory.files import TOP, is_memory_file
from limpet.memory.scope import OWNERS

SETTLED = 300
"""Milliseconds in which several changes count as one."""


def is_available() -> bool:
    """Whether files can be watched here."""
    return find_spec("watchfiles") is not None


async def watch(workspace: str, changed: Callable[[], Awaitable[None]], *, settled: int = SETTLED) -> None:
    """Call `changed` after memory files of `workspace` have changed, until this is cancelled.

    Raises an `ExceptionGroup` of what `changed` raises, and of `OSError` when files cannot be watched.
    """
    root, fresh = os.path.realpath(workspace), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_seen(root, "", fresh, settled=settled))
        if os.path.isdir(os.path.join(root, OWNERS.folder)):
            group.create_task(_seen(root, OWNERS.folder, fresh, settled=settled))
        while True:
            await fresh.wait()
            fresh.clear()
            await changed()


async def _seen(root: str, below: str, fresh: asyncio.Event, *, settled: int) -> None:
    """Set `fresh` whenever a memory file has changed, one of the workspace itself or one beneath the folder `below`."""
    from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]  # an extra

    def counts(change: Change, path: str) -> bool:
        name = os.path.relpath(path, root)
        return is_memory_file(name) if below else name in TOP

    folder = os.path.join(root, below) if below else root
    found = awatch(folder, watch_filter=counts, debounce=settled, recursive=bool(below))
    async with aclosing(found):
        async for _ in found:
            fresh.set()
