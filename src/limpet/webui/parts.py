"""Small parts that several views are made of."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

from nicegui import background_tasks, ui

from limpet.errors import LimpetError
from limpet.webui import texts

log = logging.getLogger(__name__)
T = TypeVar("T")
PAGE = 50
"""Rows that a list shows at once."""


@asynccontextmanager
async def told() -> AsyncGenerator[None]:
    """What does not work inside the block is told, and nothing else happens."""
    try:
        yield
    except LimpetError as error:
        tell(error)


def tell(error: LimpetError) -> None:
    """Say what does not work."""
    log.info("at the page: %s", error)
    ui.notify(texts.FAILED.format(error=error.present()), type="negative", multi_line=True)


@contextmanager
def sheet(title: str) -> Generator[None]:
    """The frame of a view that is read from top to bottom."""
    with ui.element("div").classes("lp-page"):
        heading(title)
        yield


def heading(text: str) -> None:
    with ui.element("h2"):
        ui.label(text)


def start(work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    """Run `work` beside the page; it ends with the application at the latest."""
    return background_tasks.create(work, name=name)  # pyright: ignore


def icon_button(icon: str, name: str, act: Callable[[], object], *, color: str | None = None) -> ui.button:
    """A round button with an icon, named for those who do not see it."""
    button = ui.button(icon=icon, on_click=lambda: act(), color=color).props(f'round flat aria-label="{name}"')
    with button:
        ui.tooltip(name)
    return button


def small_button(name: str, act: Callable[[], object]) -> ui.button:
    return ui.button(name, on_click=lambda: act()).props("outline dense no-caps").classes("q-px-sm")


def ask_first(question: str, act: Callable[[], Awaitable[None]]) -> None:
    """Do it when the owner says yes."""
    with ui.dialog() as dialog, ui.card():
        ui.label(question).classes("lp-wrap")

        async def go() -> None:
            dialog.close()
            await act()

        with ui.row():
            ui.button(texts.YES, on_click=go)
            ui.button(texts.CANCEL, on_click=dialog.close).props("flat")
    dialog.open()


def ask_text(title: str, text: str, done: Callable[[str], Awaitable[None]]) -> None:
    """Ask for a text."""
    with ui.dialog() as dialog, ui.card():
        ui.label(title).classes("lp-title")
        field = ui.textarea(value=text).props(f'outlined autogrow aria-label="{title}"').style("min-width: 18rem")

        async def save() -> None:
            dialog.close()
            await done(field.value or "")

        with ui.row():
            ui.button(texts.SAVE, on_click=save)
            ui.button(texts.CANCEL, on_click=dialog.close).props("flat")
    dialog.open()


def when(at: int) -> str:
    """`2026-12-01 10:00`, local; `never` for 0."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000)) if at else texts.NEVER


def pairs(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what they are."""
    with ui.element("dl").classes("lp-pairs"):
        for name, value in rows:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(value).classes("lp-wrap")


class Pages(Generic[T]):
    """A list that is fetched page by page: `fetch(skip, limit)` gives rows, `show` puts one on the page."""

    def __init__(self, fetch: Callable[[int, int], Sequence[T]], show: Callable[[T], None]) -> None:
        self._fetch = fetch
        self._show = show
        self._count = 0
        self._list = ui.element("div").classes("lp-list")
        self._more = ui.button(texts.MORE, on_click=self.more).props("flat no-caps")
        self._none = ui.label(texts.NOTHING).classes("lp-dim")
        self.more()

    def more(self) -> None:
        rows = self._fetch(self._count, PAGE + 1)
        with self._list:
            for row in rows[:PAGE]:
                self._show(row)
        self._count += min(len(rows), PAGE)
        self._more.set_visibility(len(rows) > PAGE)
        self._none.set_visibility(not self._count)

    def anew(self) -> None:
        """Fetch from the beginning."""
        self._list.clear()
        self._count = 0
        self.more()
