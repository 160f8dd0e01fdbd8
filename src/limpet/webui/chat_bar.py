"""Above a chat: which one it is, the others, and what there is to know about it."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from limpet.session import keys
from limpet.session.branch import first_words
from limpet.store import entries, sessions
from limpet.store.sql import Connection
from limpet.webui import chats, texts
from limpet.webui.desk import AGENT, Desk
from limpet.webui.parts import icon_button

LISTED = 50
"""Chats that can be chosen, the newest; the view of all sessions has the others."""


def chat_bar(desk: Desk, name: str, session: Callable[[], str]) -> None:
    """`session` gives the id of what is shown."""
    names = {"main": texts.CHAT_MAIN, **desk.store.read(_known)}
    names.setdefault(name, name)
    with ui.element("div").classes("lp-chatbar"):
        chosen = ui.select(names, value=name, on_change=lambda event: ui.navigate.to(f"/chat/{event.value}"))
        chosen.props("outlined dense").classes("lp-grow")
        chosen.props["aria-label"] = texts.CHAT_WHICH
        icon_button("add", texts.CHAT_NEW, lambda: ui.navigate.to(f"/chat/{chats.new_chat()}"))
        icon_button("account_tree", texts.CHAT_BRANCHES, lambda: _open("/session/{}", session()))
        icon_button("data_usage", texts.SESSION_CONTEXT, lambda: _open("/context?session={}", session()))


def _known(connection: Connection) -> dict[str, str]:
    """Live chats of the page by name, with what they are about."""
    rows = sessions.recent(connection, limit=LISTED, state="live", key=keys.web(AGENT, ""))
    found: dict[str, str] = {}
    for row in rows:
        first = entries.first(connection, row.id, "user")
        found[chats.chat_of(row.key)] = row.title or (first_words(first) if first else row.key)
    return {name: title for name, title in found.items() if name}


def _open(path: str, session: str) -> None:
    if session:
        ui.navigate.to(path.format(session))
    else:
        ui.notify(texts.CHAT_EMPTY)
