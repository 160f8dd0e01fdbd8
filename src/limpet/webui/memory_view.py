"""The browser and editor of what is remembered, with where each thing comes from, and undo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from limpet.assistant import commands_memory
from limpet.assistant.remembering import Remembering
from limpet.memory import changes
from limpet.memory.changes import Change
from limpet.memory.entries import Remembered
from limpet.memory.scope import OWNERS
from limpet.webui import texts
from limpet.webui.desk import AGENT, Desk
from limpet.webui.parts import Pages, ask_first, ask_text, heading, sheet, small_button, told, when

CHANGES = 10
"""Changes that can be taken back one by one, from the newest."""
Work = Callable[[Remembering], Awaitable[object]]


async def show(desk: Desk) -> None:
    """What is remembered of the owner's."""
    async with desk.agents.use(AGENT) as services:
        book = Remembering(services, "", scope=OWNERS).book

    async def do(work: Work) -> None:
        """Change the memory, then show it as it is."""
        async with told(), desk.agents.use(AGENT) as services:
            await work(Remembering(services, "", scope=OWNERS))
        body.refresh()

    def look() -> list[Remembered]:
        wanted = str(words.value or "").casefold()
        return [one for one in reversed(book.entries()) if wanted in one.text.casefold()]

    @ui.refreshable
    def body() -> None:
        waiting = book.waiting()
        if waiting:
            heading(texts.MEMORY_WAITING)
        for one in waiting:
            with _entry(one):
                small_button(texts.MEMORY_CONFIRM, partial(do, partial(_settle, one.id, True)))
                small_button(texts.MEMORY_REJECT, partial(do, partial(_settle, one.id, False)))
        heading(texts.MEMORY_ENTRIES)
        found = look()
        Pages(lambda skip, limit: found[skip : skip + limit], partial(_listed, do))
        _undo(desk, do)

    with sheet(texts.NAV["/memory"][0]):
        with ui.element("div").classes("lp-row"):
            words = ui.input(texts.SEARCH).props("outlined dense clearable").classes("lp-grow")
            words.on_value_change(body.refresh)
        with ui.element("div").classes("lp-row"):
            fresh = ui.input(texts.MEMORY_NEW).props("outlined dense").classes("lp-grow")

            async def add() -> None:
                text = str(fresh.value or "").strip()
                if text:
                    fresh.set_value("")
                    await do(partial(_add, text))

            fresh.on("keydown.enter", add)
            ui.button(texts.MEMORY_ADD, on_click=add)
        body()  # pyright: ignore
        heading(texts.MEMORY_HISTORY)
        async with desk.agents.use(AGENT) as services:
            ui.label(commands_memory.history(Remembering(services, "", scope=OWNERS))).classes("lp-wrap lp-panel")


def _entry(one: Remembered) -> ui.element:
    """One entry with where it comes from."""
    box = ui.element("div").classes("lp-entry")
    with box, ui.element("div").classes("lp-grow"):
        ui.label(one.text).classes("lp-wrap")
        source = one.source or texts.MEMORY_YOURS
        strange = texts.MEMORY_STRANGERS if one.trust == "external" else ""
        parts = [one.file, one.heading, one.at, source, strange]
        ui.label(" · ".join(part for part in parts if part)).classes("lp-dim")
    return box


def _listed(do: Callable[[Work], Awaitable[None]], one: Remembered) -> None:
    def change() -> None:
        ask_text(texts.MEMORY_EDIT, one.text, lambda text: do(partial(_edit, one.id, text)))

    def forget() -> None:
        ask_first(texts.MEMORY_FORGET_SURE.format(text=one.text), lambda: do(partial(_forget, one.id)))

    with _entry(one):
        small_button(texts.MEMORY_EDIT, change)
        small_button(texts.MEMORY_FORGET, forget)


def _undo(desk: Desk, do: Callable[[Work], Awaitable[None]]) -> None:
    """The newest changes that were made, and taking the newest back."""
    made = desk.store.read(lambda connection: changes.newest(connection, OWNERS.name, limit=CHANGES))
    if not made:
        return
    heading(texts.MEMORY_CHANGES)
    small_button(texts.MEMORY_UNDO, partial(do, _take_back))
    for one in made:
        _change(one)


def _change(one: Change) -> None:
    with ui.element("div").classes("lp-panel"):
        ui.label(f"{when(one.at)} · {one.source}").classes("lp-dim")
        for hunk in one.hunks:
            lines = [f"- {line}" for line in hunk.before] + [f"+ {line}" for line in hunk.after]
            ui.label("\n".join([hunk.file, *lines])).classes("lp-mono")


async def _add(text: str, known: Remembering) -> None:
    await known.add(text)


async def _edit(entry: str, text: str, known: Remembering) -> None:
    await known.edit(entry, text)


async def _forget(entry: str, known: Remembering) -> None:
    await known.forget(entry)


async def _settle(entry: str, confirm: bool, known: Remembering) -> None:
    await known.settle(entry, confirm=confirm)


async def _take_back(known: Remembering) -> None:
    await known.undo(1)
