"""The page itself: one frame with a menu, and in it the view that the address names. Only this imports NiceGUI."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from limpet.webui import chat_view, texts
from limpet.webui.desk import Desk

PREFIX = "/web"
STATIC = Path(__file__).parent / "static"
ICON = "🐚"
RECONNECT = 30.0
"""Seconds for which a page that was away is waited for."""


def build(desk: Desk) -> FastAPI:
    """The application, to be served below `/web`."""
    outer = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    nicegui_app.add_static_files("/static", STATIC)
    ui.run_with(  # pyright: ignore[reportUnknownMemberType]
        outer,
        root=lambda: _frame(desk),
        title=texts.TITLE,
        favicon=ICON,
        dark=None,
        language="en-US",
        mount_path=PREFIX,
        tailwind=False,
        gzip_middleware_factory=None,
        reconnect_timeout=RECONNECT,
        binding_refresh_interval=None,
        show_welcome_message=False,
    )
    return outer


def views(desk: Desk) -> dict[str, Callable[..., object]]:
    """What each address shows."""

    def chat(name: str) -> None:
        chat_view.show(desk, name)

    return {"/": partial(chat, "main"), "/chat/{name}": chat}


def _frame(desk: Desk) -> None:
    ui.add_head_html(f'<link rel="stylesheet" href="{PREFIX}/static/limpet.css">')
    ui.link(texts.SKIP, "#content").classes("lp-skip")
    drawer = ui.left_drawer(value=False).classes("lp-drawer")
    with drawer.props('show-if-above width=230 breakpoint=900 role="navigation"'):
        for path, (name, icon) in texts.NAV.items():
            with ui.link(target=path).classes("lp-nav"):
                ui.icon(icon).props('aria-hidden="true"')
                ui.label(name)
    with ui.header().classes("lp-header"):
        ui.button(icon="menu", on_click=drawer.toggle).props(f'flat round dense aria-label="{texts.MENU}"')
        ui.label(texts.TITLE).classes("lp-title").props('role="heading" aria-level="1"')
        ui.space()
    ui.sub_pages(views(desk)).props('id="content"')
