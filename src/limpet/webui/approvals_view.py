"""The inbox of what waits for the owner's word, and what he said yes to for good."""

from __future__ import annotations

from functools import partial
from typing import Literal

from nicegui import ui

from limpet.errors import InputError
from limpet.store import approvals as rows
from limpet.store.sql import Connection
from limpet.types.approval import Approval, Reply
from limpet.webui import chats, texts
from limpet.webui.approval_box import approval_box
from limpet.webui.desk import Desk
from limpet.webui.parts import heading, sheet, small_button, told, when


def show(desk: Desk) -> None:
    """What waits, what counts for good, and what was decided last."""

    async def decide(approval: Approval, reply: Reply) -> None:
        async with told():
            await chats.decide(desk, approval, reply)
        inbox.refresh()

    async def revoke(approval: Approval) -> None:
        async with told():
            await end_always(desk, approval)
        inbox.refresh()

    @ui.refreshable
    def inbox() -> None:
        waiting = found(desk, "open")
        for one in waiting:
            ui.label(one.key).classes("lp-mono lp-dim")
            approval_box(one, decide)
        if not waiting:
            ui.label(texts.APPROVALS_NONE).classes("lp-dim")
        heading(texts.APPROVALS_ALWAYS)
        for one in found(desk, "always"):
            with ui.element("div").classes("lp-entry"):
                ui.label(one.wanted.plan).classes("lp-mono lp-grow")
                ui.label(texts.APPROVALS_SINCE.format(agent=one.agent, when=when(one.at))).classes("lp-dim")
                small_button(texts.APPROVALS_REVOKE, partial(revoke, one))
        heading(texts.APPROVALS_PAST)
        for one in found(desk, "all"):
            if one.outcome:
                with ui.element("div").classes("lp-entry"):
                    ui.label(one.wanted.plan).classes("lp-mono lp-grow")
                    said = texts.OUTCOMES[one.outcome]
                    ui.label(f"{said} · {when(one.at)} · {one.by}".rstrip(" ·")).classes("lp-dim")

    with sheet(texts.NAV["/approvals"][0]):
        inbox()  # pyright: ignore


def found(desk: Desk, which: Literal["open", "always", "all"]) -> list[Approval]:
    now = desk.clock.now()
    return desk.store.read(lambda connection: rows.recent(connection, which, now=now))


async def end_always(desk: Desk, approval: Approval) -> None:
    """From now on it is asked for again. Raises `InputError`."""
    now = desk.clock.now()

    def work(connection: Connection) -> None:
        if not rows.revoke(connection, approval.id, now=now):
            raise InputError(f"{approval.id} is no yes for good that is in force.")

    await desk.store.write(work)
    desk.nudges.send()
