"""The control of a running turn: stopping it, out of band and at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from limpet.errors import TurnStopped

T = TypeVar("T")


class Control:
    """Shared by the loop and whoever may stop it. `shown` is the text of the current answer that watchers have seen."""

    def __init__(self) -> None:
        self._stopped = asyncio.Event()
        self.shown: list[str] = []

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        """The owner said stop: what `run` is doing is cancelled, and nothing new begins."""
        self._stopped.set()

    async def run(self, work: Coroutine[object, object, T]) -> T:
        """Do `work` unless and until stopped. Raises `TurnStopped` once it is cancelled and cleaned up."""
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._stopped.wait())
        try:
            if not self.stopped:
                await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
        finally:
            await _end(task)
            await _end(stop)
        raise TurnStopped("Stopped.")


async def _end(task: asyncio.Future[T]) -> None:
    """Cancel `task` and wait until it is over, whatever it does on the way out."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()
