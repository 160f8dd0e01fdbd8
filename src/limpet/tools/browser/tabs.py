"""The tabs of one conversation, and what happened in them that nobody asked for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from limpet.errors import ToolError

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, FileChooser, Page

MOST = 10
"""Tabs that a conversation may have; a page that opens more has them closed."""
_TOLD = 300
"""Characters of a dialog that are told."""


class Tabs:
    """`lock` is held by whoever acts in them."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._pages: list[Page] = []
        self._current = 0
        self._notes: list[str] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.lock = asyncio.Lock()

    @property
    def pages(self) -> tuple[Page, ...]:
        return tuple(self._pages)

    @property
    def number(self) -> int:
        """Of the current one, from 1; 0 when there is none."""
        return self._current + 1 if self._pages else 0

    def current(self) -> Page:
        """Raises `ToolError` when there is none."""
        if not self._pages:
            raise ToolError("No page is open.", hint="Use the action open with an url first.")
        return self._pages[self._current]

    async def for_opening(self) -> Page:
        """The current tab, a new one where there is none."""
        if not self._pages:
            self._adopt(await self._context.new_page())
        return self.current()

    def switch(self, number: int) -> Page:
        """Raises `ToolError`."""
        if not 1 <= number <= len(self._pages):
            raise ToolError(f"There is no tab {number}; there are {len(self._pages)}.")
        self._current = number - 1
        return self.current()

    def notes(self) -> list[str]:
        """What happened since the last call. It may quote the page."""
        found, self._notes = self._notes, []
        return found

    def _adopt(self, page: Page) -> None:
        if page in self._pages:
            return
        if len(self._pages) >= MOST:
            self._notes.append(f"[A further tab was closed at once: {MOST} are the most.]")
            task = asyncio.ensure_future(_closed(page))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            return
        self._pages.append(page)
        self._current = len(self._pages) - 1
        page.on("popup", self._popped_up)
        page.on("close", self._left)
        page.on("dialog", self._asked)
        page.on("download", self._offered)
        page.on("filechooser", self._chooser)

    def _popped_up(self, page: Page) -> None:
        self._adopt(page)
        self._notes.append(f"[The page opened tab {self.number}, which is the current one now.]")

    def _left(self, page: Page) -> None:
        if page in self._pages:
            place = self._pages.index(page)
            self._pages.remove(page)
            if self._current >= place and self._current:
                self._current -= 1

    async def _asked(self, dialog: Dialog) -> None:
        from playwright.async_api import Error  # loaded long ago

        answer = "accepted" if dialog.type == "alert" else "dismissed"
        self._notes.append(
            f"[The page showed a dialog ({dialog.type}), which was {answer}: {dialog.message[:_TOLD]!r}]"
        )
        with suppress(Error):
            await (dialog.accept() if answer == "accepted" else dialog.dismiss())

    async def _offered(self, download: Download) -> None:
        from playwright.async_api import Error  # loaded long ago

        self._notes.append(f"[A download was refused: {download.suggested_filename[:_TOLD]!r}]")
        with suppress(Error):
            await download.cancel()

    def _chooser(self, chooser: FileChooser) -> None:
        self._notes.append("[The page asked for a file. None is ever given.]")


async def _closed(page: Page) -> None:
    from playwright.async_api import Error  # loaded long ago

    with suppress(Error):
        await page.close()
