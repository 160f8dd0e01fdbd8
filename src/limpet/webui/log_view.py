"""The log of what went wrong, and the audit of who changed what."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct
from nicegui import ui

from limpet.store import audit
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import Pages, heading, sheet, when

TAIL = 400_000
"""Bytes of the log that are looked at, from its end."""
ROWS = 2_000
"""Rows of the audit that can be looked at here, the newest."""


class Line(Struct, frozen=True):
    """One line of the log; `time` is UTC ms."""

    time: int
    level: str
    text: str
    source: str = msgspec.field(name="from", default="")


def show(desk: Desk) -> None:
    """The newest first, both."""
    with sheet(texts.NAV["/log"][0]):
        words = ui.input(texts.SEARCH).props("outlined dense clearable")

        @ui.refreshable
        def lines() -> None:
            wanted = str(words.value or "").casefold()
            found = [one for one in newest(desk.home.logs / "limpet.log") if wanted in one.text.casefold()]
            Pages(lambda skip, limit: found[skip : skip + limit], _line)

        lines()  # pyright: ignore
        words.on_value_change(lines.refresh)
        heading(texts.AUDIT)
        faults = desk.store.read(audit.faults)
        for fault in faults:
            ui.label(fault).classes("lp-bad lp-wrap")
        if not faults:
            ui.label(texts.AUDIT_HOLDS).classes("lp-good")
        rows = desk.store.read(lambda connection: list(audit.rows(connection, last=ROWS)))[::-1]
        Pages(lambda skip, limit: rows[skip : skip + limit], _row)


def newest(path: Path) -> list[Line]:
    """What stands at the end of the log, the newest first."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            data = file.read()
    except OSError:
        return []
    found: list[Line] = []
    for raw in reversed(data.splitlines()):
        try:
            found.append(msgspec.json.decode(raw, type=Line))
        except msgspec.MsgspecError:  # the first line of what was read may be the end of one
            continue
    return found


def _line(one: Line) -> None:
    with ui.element("div").classes("lp-entry"):
        ui.label(f"{when(one.time)} {one.level}").classes("lp-bad" if one.level == "error" else "lp-dim")
        ui.label(one.text).classes("lp-mono full-width")


def _row(row: audit.Row) -> None:
    with ui.element("div").classes("lp-entry"):
        ui.label(when(row.at)).classes("lp-dim")
        ui.label(row.act).classes("text-weight-bold")
        ui.label(f"{row.subject} {row.detail}").classes("lp-mono lp-wrap")
