"""The frame around all views: header, menu, light and dark."""

from __future__ import annotations

from urllib.parse import urlsplit

from nicegui import ui
from nicegui.context import context

from limpet import __version__
from limpet.store import approvals
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import icon_button

PREFIX = "/web"
LOOK = 2.0
"""Seconds between two looks at how much waits."""
ACCENT = "#0b5d57"
DARK_COOKIE = "limpet-dark"
LEAVE = f"fetch('{PREFIX}/logout', {{method: 'POST'}}).then(() => location.assign('{PREFIX}/login'))"
KEEP_DARK = f"document.cookie = '{DARK_COOKIE}={{value}}; path={PREFIX}; max-age=31536000; samesite=lax'"


def frame(desk: Desk) -> None:
    """Everything but the view itself."""
    ui.add_head_html(f'<link rel="stylesheet" href="{PREFIX}/static/limpet.css?{__version__}">')
    ui.colors(primary=ACCENT)
    dark = _dark()
    with ui.header().classes("lp-header"):
        ui.link(texts.SKIP, "#content").classes("lp-skip")
        icon_button("menu", texts.MENU, lambda: drawer.toggle())
        with ui.element("h1").classes("lp-title"):
            ui.label(texts.TITLE)
        ui.space()
        icon_button("contrast", texts.DARK, lambda: _switch(dark))
        icon_button("logout", texts.LOGOUT, lambda: ui.run_javascript(LEAVE))

    drawer = ui.left_drawer(value=False).classes("lp-drawer")
    with drawer.props("show-if-above width=230 breakpoint=900"), ui.element("nav"):
        links, badge = _menu()

    def look() -> None:
        now = desk.clock.now()
        count = len(desk.store.read(lambda connection: approvals.recent(connection, "open", now=now)))
        badge.set_text(str(count))
        badge.set_visibility(count > 0)

    def mark(path: str) -> None:
        for target, link in links.items():
            link.props["aria-current"] = "page" if urlsplit(path).path.rstrip("/") == target.rstrip("/") else "false"
            link.update()

    look()
    ui.timer(LOOK, look)
    router = context.client.sub_pages_router
    router.on_path_changed(mark)
    mark(router.current_path)


def _menu() -> tuple[dict[str, ui.link], ui.badge]:
    """The links by their paths, and the badge of what waits for a word."""
    links: dict[str, ui.link] = {}
    badge: ui.badge | None = None
    for path, (name, icon) in texts.NAV.items():
        with ui.link(target=path).classes("lp-nav") as links[path]:
            ui.icon(icon).props('aria-hidden="true"')
            ui.label(name)
            if path == "/approvals":
                badge = ui.badge()
    assert badge is not None
    return links, badge


def _dark() -> ui.dark_mode:
    """As was chosen in this browser, else as the system has it."""
    kept = context.client.request.cookies.get(DARK_COOKIE, "")
    return ui.dark_mode({"1": True, "0": False}.get(kept))


def _switch(dark: ui.dark_mode) -> None:
    """From whatever it is to the other one; the choice stays in the browser."""
    dark.set_value(not dark.value)
    ui.run_javascript(KEEP_DARK.format(value=int(bool(dark.value))))
