"""What waits for the owner's word, with the buttons that give it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

from nicegui import ui

from limpet.types.approval import Approval, Reply, Word
from limpet.webui import texts

Decide = Callable[[Approval, Reply], Awaitable[None]]


def approval_box(approval: Approval, decide: Decide) -> None:
    """Shows the plan word for word; a question has its choices, or a field for the answer."""
    wanted = approval.wanted
    with ui.element("section").classes("lp-approval").props(f'aria-label="{texts.APPROVAL_WANTED}"'):
        ui.label(texts.APPROVAL_WANTED).classes("lp-title")
        ui.label(wanted.plan).classes("lp-mono")
        if wanted.reason:
            ui.label(wanted.reason).classes("lp-dim lp-wrap")
        until = time.strftime("%H:%M", time.localtime(approval.expires / 1000))
        ui.label(texts.APPROVAL_UNTIL.format(when=until)).classes("lp-dim")
        if wanted.kind == "call":
            words: dict[Word, str] = {"once": texts.APPROVAL_ONCE, "always": texts.APPROVAL_ALWAYS}
            with ui.row():
                for word, name in words.items():
                    ui.button(name, on_click=partial(decide, approval, Reply(word)))
                ui.button(texts.APPROVAL_DENY, on_click=lambda: decide(approval, Reply("deny"))).props("outline")
        else:
            _question(approval, decide)


def _question(approval: Approval, decide: Decide) -> None:
    wanted = approval.wanted
    with ui.row():
        for choice in wanted.choices:
            ui.button(choice, on_click=partial(decide, approval, Reply("answer", choice))).props("no-caps")
        ui.button(texts.APPROVAL_DENY, on_click=lambda: decide(approval, Reply("deny"))).props("outline")
    if not wanted.only_choices:
        with ui.row().classes("items-center"):
            field = ui.input().props(f'outlined dense aria-label="{texts.APPROVAL_ANSWER}"')
            ui.button(texts.APPROVAL_ANSWER, on_click=lambda: decide(approval, Reply("answer", field.value or "")))
