"""The views of all conversations and of one that is only looked at."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from limpet.errors import LimpetError
from limpet.session import search
from limpet.session.overview import Overview
from limpet.session.search import Hit
from limpet.store import sessions
from limpet.store.sql import Connection
from limpet.webui import chats, exports, texts
from limpet.webui.desk import Desk
from limpet.webui.feed import Feed
from limpet.webui.message import Message, Wish
from limpet.webui.parts import Pages, heading, pairs, sheet, small_button, told, when
from limpet.webui.transcript import dollars

HITS = 30
SHOWN = 240
"""Characters of what was said that a hit shows."""


def show(desk: Desk) -> None:
    """All conversations, the newest first, and a search in what was said."""
    with sheet(texts.NAV["/sessions"][0]):
        with ui.element("div").classes("lp-row"):
            words = ui.input(texts.SESSIONS_SEARCH).props("outlined dense clearable").classes("lp-grow")
            state = ui.toggle(texts.SESSIONS_STATES, value="").props("no-caps dense")
        found = ui.element("div").classes("lp-list")
        listed = ui.element("div").classes("lp-list")
        with listed:
            pages = Pages(
                lambda skip, limit: _rows(desk, state=str(state.value or ""), skip=skip, limit=limit), partial(_row)
            )
    state.on_value_change(pages.anew)

    async def look() -> None:
        found.clear()
        wanted = str(words.value or "").strip()
        listed.set_visibility(not wanted)
        if wanted:
            hits = await find(desk, wanted)
            with found:
                for hit in hits:
                    _hit(hit, wanted)
                if not hits:
                    ui.label(texts.NOTHING).classes("lp-dim")

    words.on("keydown.enter", look)
    words.on("clear", look)


async def find(desk: Desk, words: str) -> list[Hit]:
    """Where something was said. Raises `StoreError`."""
    while await desk.store.write(search.fill):
        pass
    return desk.store.read(lambda connection: search.search(connection, words, limit=HITS))


def _rows(desk: Desk, *, state: str, skip: int, limit: int) -> list[Overview]:
    def work(connection: Connection) -> list[Overview]:
        rows = sessions.recent(connection, limit=limit, skip=skip, state=state)
        return [Overview.of(connection, row) for row in rows]

    return desk.store.read(work)


def _row(row: Overview) -> None:
    ended = texts.SESSIONS_ENDED.format(why=row.end_reason) if row.ended else texts.SESSIONS_LIVE
    parts = [when(row.updated), ended, texts.SESSIONS_TURNS.format(count=row.turns), row.model]
    parts += [dollars(row.cost)] if row.cost is not None else []
    with ui.element("div").classes("lp-entry"):
        ui.link(row.title or row.key, f"/session/{row.id}")
        ui.label(row.key).classes("lp-mono lp-dim")
        ui.label(" · ".join(part for part in parts if part)).classes("lp-dim")


def _hit(hit: Hit, words: str) -> None:
    with ui.element("div").classes("lp-entry"):
        ui.link(hit.session.title or hit.session.key, f"/session/{hit.session.id}")
        ui.label(when(hit.entry.at)).classes("lp-dim")
        for one in hit.around:
            said = search.about(search.spoken(one), words, length=SHOWN)
            ui.label(f"{search.who(one)}: {said}").classes("lp-wrap full-width")


def show_one(desk: Desk, session: str) -> None:
    """One conversation, whatever became of it: what was said, its branches and labels, and copies of it."""
    try:
        row = chats.session_of(desk, session)
    except LimpetError as error:
        ui.label(error.present()).classes("lp-page lp-bad")
        return
    feed = Feed(desk, row.key, session=row.id)
    chat = chats.chat_of(row.key) if row.ended is None else ""
    with sheet(row.title or row.key):
        with ui.element("div").classes("lp-row"):
            if chat:
                ui.link(texts.SESSION_OPEN, f"/chat/{chat}")
            ui.link(texts.SESSION_CONTEXT, f"/context?session={row.id}")
            for form in exports.FORMS:
                small_button(texts.SESSION_EXPORT.format(form=form), partial(_export, desk, row.id, form))
        branches(desk, row.id)
        items = feed.load()
        if names := feed.labels():
            pairs([(texts.SESSION_LABELS, ", ".join(names))])
        heading(texts.MESSAGES)
        with ui.element("div").classes("lp-stream") as stream:
            for item in items:
                Message(item, wanted=lambda wish: _wanted(desk, row.id, wish), readonly=True)

    def earlier() -> None:
        with stream:
            for place, item in enumerate(feed.load(before=feed.earlier)):
                message = Message(item, wanted=lambda wish: _wanted(desk, row.id, wish), readonly=True)
                message.move(target_index=place)
        button.set_visibility(bool(feed.earlier))

    with stream:
        button = ui.button(texts.CHAT_EARLIER, on_click=earlier).props("flat no-caps")
        button.move(target_index=0)
    button.set_visibility(bool(feed.earlier))


def branches(desk: Desk, session: str) -> None:
    """The branches of a conversation, where there are several, and its labels."""
    tips = chats.tips(desk, session)
    if len(tips) < 2:
        return
    with ui.expansion(texts.CHAT_BRANCHES).classes("lp-panel"):
        ui.label(texts.CHAT_BRANCH_HOW).classes("lp-dim")
        for entry, words, is_shown in tips:
            with ui.element("div").classes("lp-row"):
                ui.label(words).classes("lp-grow lp-wrap")
                if is_shown:
                    ui.label(texts.CHAT_THIS_BRANCH).classes("lp-dim")
                else:
                    small_button(texts.CHAT_GO, partial(_go, desk, session, entry))


async def _go(desk: Desk, session: str, entry: str) -> None:
    async with told():
        await chats.go_to(desk, session, entry)
        if chat := chats.chat_of(chats.session_of(desk, session).key):
            ui.navigate.to(f"/chat/{chat}")
        else:
            ui.navigate.reload()


async def _export(desk: Desk, session: str, form: exports.Form) -> None:
    async with told():
        text = await exports.export(desk, session, form)
        ui.download.content(text, f"{session}.{exports.SUFFIX[form]}")


async def _wanted(desk: Desk, session: str, wish: Wish) -> None:
    if wish.act == "fork":
        async with told():
            ui.navigate.to(f"/chat/{await chats.fork(desk, session, wish.id)}")
    elif wish.act in ("copied", "uncopied"):
        ui.notify(texts.COPIED if wish.act == "copied" else texts.UNCOPIED)
