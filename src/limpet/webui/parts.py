"""Small parts that several views are made of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager

from nicegui import background_tasks, ui

from limpet.errors import LimpetError
from limpet.webui import texts

log = logging.getLogger(__name__)


@asynccontextmanager
async def told() -> AsyncGenerator[None]:
    """What does not work inside the block is told, and nothing else happens."""
    try:
        yield
    except LimpetError as error:
        log.info("at the page: %s", error)
        ui.notify(texts.FAILED.format(error=error.present()), type="negative", multi_line=True)


def start(work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    """Run `work` beside the page; it ends with the application at the latest."""
    return background_tasks.create(work, name=name)  # pyright: ignore


def icon_button(icon: str, name: str, act: Callable[[], object], *, color: str | None = None) -> ui.button:
    """A round button with an icon, named for those who do not see it."""
    button = ui.button(icon=icon, on_click=lambda: act(), color=color).props(f'round flat aria-label="{name}"')
    with button:
        ui.tooltip(name)
    return button
