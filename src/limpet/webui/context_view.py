"""The context inspector: what the next request of a conversation holds, and why it costs what it costs."""

from __future__ import annotations

from nicegui import ui

from limpet.assistant.conversation import Conversation
from limpet.assistant.inspection import Inspection, inspect
from limpet.errors import LimpetError
from limpet.session import keys
from limpet.store import sessions
from limpet.webui import texts
from limpet.webui.desk import AGENT, Desk
from limpet.webui.parts import heading, pairs, sheet, when

LIVE = 200
"""Conversations that can be chosen, the newest."""
COLOURS = ("#0b5d57", "#1f6feb", "#8250df", "#9a6700", "#bf3989", "#116329", "#57606a", "#a40e26", "#0969da", "#6639ba")


async def show(desk: Desk, session: str = "") -> None:
    """The live conversation with the id `session`, else the main one."""
    rows = desk.store.read(lambda connection: sessions.recent(connection, limit=LIVE, state="live"))
    names = {row.key: row.title or row.key for row in rows}
    names.setdefault(keys.main(AGENT), keys.main(AGENT))
    key = next((row.key for row in rows if row.id == session), keys.main(AGENT))

    async def look() -> None:
        body.clear()
        with body:
            await _inspected(desk, str(chosen.value))

    with sheet(texts.NAV["/context"][0]):
        chosen = ui.select(names, value=key, label=texts.CONTEXT_WHICH, on_change=look).props("outlined dense")
        body = ui.element("div").classes("lp-list")
    await look()


async def _inspected(desk: Desk, key: str) -> None:
    try:
        async with desk.agents.use(keys.agent_of(key)) as services:
            found = await inspect(Conversation(services, key))
    except LimpetError as error:
        ui.label(error.present()).classes("lp-bad")
        return
    _bar(found)
    pairs(
        [
            (texts.CONTEXT_MODEL, found.model),
            (texts.CONTEXT_TOTAL, texts.CONTEXT_OF.format(total=found.total, limit=found.limit, window=found.window)),
            (texts.CONTEXT_PROMPT, f"{found.tier}, {found.reason}"),
            *_cache(found),
            *([(texts.CONTEXT_DEFERRED, found.deferred)] if found.deferred else []),
        ]
    )
    heading(texts.CONTEXT_SECTIONS)
    for place, one in enumerate(found.parts):
        title = f"{one.name} · {texts.CONTEXT_TOKENS.format(tokens=one.tokens)}"
        if not one.text:
            with ui.element("div").classes("lp-entry"):
                _dot(place)
                ui.label(title)
            continue
        with ui.expansion(title).classes("lp-panel"):
            ui.label(one.text).classes("lp-mono")
    heading(texts.CONTEXT_BREAKS)
    for one in reversed(found.breaks):
        with ui.element("div").classes("lp-entry"):
            ui.label(when(one.at)).classes("lp-dim")
            ui.label(one.why).classes("lp-wrap")
    if not found.breaks:
        ui.label(texts.CONTEXT_NO_BREAK).classes("lp-dim")


def _bar(found: Inspection) -> None:
    """All parts side by side, as wide as their tokens, up to what a request may have."""
    most = max(found.limit, found.total, 1)
    told = texts.CONTEXT_OF.format(total=found.total, limit=found.limit, window=found.window)
    with ui.element("div").classes("lp-bar").props(f'role="img" aria-label="{told}"'):
        for place, one in enumerate(found.parts):
            part = ui.element("div").style(f"background: {_colour(place)}; width: {100 * one.tokens / most:.2f}%")
            with part:
                ui.tooltip(f"{one.name}: {one.tokens:,}")


def _cache(found: Inspection) -> list[tuple[str, str]]:
    if not found.lasts:
        return [(texts.CONTEXT_CACHE, texts.CONTEXT_NO_CACHE)]
    points = texts.CONTEXT_POINTS.format(minutes=found.lasts // 60, prefix=found.prefix)
    rate = texts.CONTEXT_UNREAD if found.hit_rate is None else f"{found.hit_rate:.0%}"
    last = f"{when(found.breaks[-1].at)}: {found.breaks[-1].why}" if found.breaks else texts.CONTEXT_NO_BREAK
    return [(texts.CONTEXT_CACHE, points), (texts.CONTEXT_HITS, rate), (texts.CONTEXT_LAST_BREAK, last)]


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _dot(place: int) -> None:
    ui.element("span").style(f"background: {_colour(place)}; width: .8rem; height: .8rem; border-radius: 50%")
