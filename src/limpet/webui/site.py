"""The page itself: one frame with a menu, and in it the view that the address names. Only this imports NiceGUI."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from nicegui import app as nicegui_app
from nicegui import ui

from limpet.webui import (
    agents_view,
    approvals_view,
    channels_view,
    chat_view,
    context_view,
    log_view,
    memory_view,
    policy_view,
    schedule_view,
    sessions_view,
    settings_view,
    texts,
    usage_view,
)
from limpet.webui.desk import Desk
from limpet.webui.frame import PREFIX, frame

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
        root=lambda: _root(desk),
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

    def session(name: str) -> None:
        sessions_view.show_one(desk, name)

    async def context(session: str = "") -> None:
        await context_view.show(desk, session)

    return {
        "/": partial(chat, "main"),
        "/chat/{name}": chat,
        "/session/{name}": session,
        "/sessions": partial(sessions_view.show, desk),
        "/approvals": partial(approvals_view.show, desk),
        "/memory": partial(memory_view.show, desk),
        "/schedule": partial(schedule_view.show, desk),
        "/context": context,
        "/usage": partial(usage_view.show, desk),
        "/channels": partial(channels_view.show, desk),
        "/agents": partial(agents_view.show, desk),
        "/policy": partial(policy_view.show, desk),
        "/settings": partial(settings_view.show, desk),
        "/log": partial(log_view.show, desk),
    }


def _root(desk: Desk) -> None:
    frame(desk)
    ui.sub_pages(views(desk)).props('id="content" tabindex="-1"')
