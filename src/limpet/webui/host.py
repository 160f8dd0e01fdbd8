"""The life of the page's application: made when it is first asked for, ended with the gateway.

A mounted application is not told when the server begins and ends, so it is told here, by one task that owns both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, TypeGuard

from limpet.errors import UserError
from limpet.webui.desk import Desk

if TYPE_CHECKING:
    from fastapi import FastAPI

log = logging.getLogger(__name__)

SITE = "limpet.webui.site"
LOADING, ENDING = 60.0, 5.0
"""Seconds."""


class Host:
    """Gives the application over `desk`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[FastAPI] | None = None
        self._stop = asyncio.Event()

    async def app(self) -> FastAPI:
        """The application, once it runs. Raises `UserError` when it cannot."""
        if self._ready is None or (self._task is not None and self._task.done()):
            self._ready = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._own(self._ready), name="page")
        assert self._task is not None
        await asyncio.wait((self._ready, self._task), timeout=LOADING, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done():
            if self._task.done() and (error := self._task.exception()) is not None:
                log.error("the page does not begin", exc_info=error)
            raise UserError("The page does not begin; the log of the gateway says why.")
        return self._ready.result()

    async def _own(self, ready: asyncio.Future[FastAPI]) -> None:
        try:
            found = await asyncio.to_thread(import_module, SITE)  # NiceGUI takes about a second
        except ImportError as error:
            log.warning("the page cannot be loaded", exc_info=error)
            return
        if not _is_builder(build := found.build):
            raise TypeError(f"{SITE} builds nothing")
        app = build(self._desk)
        async with app.router.lifespan_context(app):
            ready.set_result(app)
            await self._stop.wait()

    async def close(self) -> None:
        """End it, when it was ever begun."""
        self._stop.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=ENDING)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _is_builder(value: object) -> TypeGuard[Callable[[Desk], FastAPI]]:
    return callable(value)
