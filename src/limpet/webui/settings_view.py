"""Settings: every key of the schema with what is in force, to be changed in the file that keeps its comments."""

from __future__ import annotations

import asyncio
import os
from functools import partial

import msgspec
from msgspec import Struct
from nicegui import ui

from limpet.config import check
from limpet.config.load import load_settings
from limpet.config.secrets import is_reference, is_secret_name
from limpet.config.table import Key, dotted, is_table, leaves, look_up
from limpet.config.write import set_value, unset_value
from limpet.errors import ConfigError
from limpet.store import audit
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import Pages, sheet, small_button, told


class Setting(Struct, frozen=True):
    """`value` is what is in force, as text; `is_set`: it stands in the file, else it is the default."""

    key: Key
    value: str
    is_set: bool
    is_secret: bool = False

    @property
    def name(self) -> str:
        return dotted(self.key)


def show(desk: Desk) -> None:
    """All settings, or those whose name holds some words."""

    def look() -> list[Setting]:
        words = str(wanted.value or "").casefold().split()
        return [one for one in found(desk) if all(word in one.name.casefold() for word in words)]

    @ui.refreshable
    def body() -> None:
        rows = look()
        Pages(lambda skip, limit: rows[skip : skip + limit], partial(_setting, desk))

    async def add() -> None:
        async with told():
            await change(desk, tuple(str(name.value or "").strip().split(".")), str(value.value or ""))
            ui.notify(texts.SETTING_SAVED)
        body.refresh()

    with sheet(texts.NAV["/settings"][0]):
        ui.label(texts.SETTINGS_HOW.format(path=desk.home.config)).classes("lp-dim lp-wrap")
        wanted = ui.input(texts.SEARCH).props("outlined dense clearable")
        wanted.on_value_change(body.refresh)
        with ui.element("div").classes("lp-row"):
            name = ui.input(texts.SETTING_NAME).props("outlined dense").classes("lp-grow")
            value = ui.input(texts.SETTING_VALUE).props("outlined dense").classes("lp-grow")
            ui.button(texts.SAVE, on_click=add)
        body()  # pyright: ignore


def found(desk: Desk) -> list[Setting]:
    """Every value in force by its key. Raises `ConfigError` when the file cannot be read."""
    loaded = load_settings(desk.home.config, os.environ)
    effective: object = msgspec.to_builtins(loaded.settings)
    if not is_table(effective):
        return []
    return [_one(key, value, is_set=look_up(loaded.table, key) is not None) for key, value in leaves(effective)]


def _one(key: Key, value: object, *, is_set: bool) -> Setting:
    hides = isinstance(value, str) and bool(value) and is_secret_name(key[-1]) and not is_reference(value)
    said = value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()
    return Setting(key, "" if hides else said, is_set, is_secret=hides)


async def change(desk: Desk, key: Key, text: str) -> None:
    """Write a setting. Raises `ConfigError` for what is none, or does not fit."""
    await asyncio.to_thread(set_value, desk.home.config, key, text)
    await _note(desk, key)


async def reset(desk: Desk, key: Key) -> None:
    """Take a setting out of the file, so that its default counts again. Raises `ConfigError`."""
    if await asyncio.to_thread(unset_value, desk.home.config, key):
        await _note(desk, key)


async def _note(desk: Desk, key: Key) -> None:
    now = desk.clock.now()
    await desk.store.write(lambda connection: audit.append(connection, "config.changed", dotted(key), now=now))


def _setting(desk: Desk, one: Setting) -> None:
    """A setting with a field; lists and tables are changed in the file."""
    with ui.element("div").classes("lp-entry"):
        ui.label(one.name).classes("lp-mono lp-grow")
        if not _is_plain(one):
            ui.label(one.value).classes("lp-mono lp-dim")
            return
        hint = texts.SETTING_HIDDEN if one.is_secret else ""
        field = ui.input(value=one.value, placeholder=hint).props("outlined dense")
        field.props["aria-label"] = one.name
        field.classes("lp-grow")

        async def save() -> None:
            try:
                await change(desk, one.key, str(field.value or ""))
            except ConfigError as error:
                field.props["error"], field.props["error-message"] = True, error.present()
                field.update()
                return
            field.props["error"] = False
            field.update()
            ui.notify(texts.SETTING_SAVED)

        async def back() -> None:
            async with told():
                await reset(desk, one.key)
                ui.notify(texts.SETTING_SAVED)
                ui.navigate.reload()

        field.on("keydown.enter", save)
        small_button(texts.SAVE, save)
        if one.is_set:
            small_button(texts.SETTING_DEFAULT, back)


def _is_plain(one: Setting) -> bool:
    """Whether a text can be its value."""
    kind = check.type_of(one.key)
    try:
        check.from_text(one.key, one.value)
    except ValueError as error:
        return "table" not in str(error)
    return kind is not None
