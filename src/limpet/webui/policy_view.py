"""What may run unasked, and which rule says so."""

from __future__ import annotations

from nicegui import ui

from limpet.tools.described import DEFAULTS, described
from limpet.tools.profiles import PROFILES
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import heading, pairs, sheet


def show(desk: Desk) -> None:
    """The owner's rules, then what holds where none of them fits."""
    settings = desk.agents.settings.policy
    tables = (("agent", settings.agents), ("channel", settings.channels), ("sender", settings.senders))
    with sheet(texts.NAV["/policy"][0]):
        ui.label(texts.POLICY_HOW).classes("lp-dim")
        heading(texts.POLICY_PROFILES)
        rows = [(settings.profile, ", ".join(PROFILES[settings.profile]))]
        rows += [(f"{kind} {name}", profile) for kind, table in tables for name, profile in table.items()]
        pairs(rows)
        if settings.exec.mode == "list":
            heading(texts.POLICY_COMMANDS)
            allowed = ", ".join(settings.exec.allow) or texts.NOTHING
            pairs([(texts.POLICY_ALLOWED, allowed), (texts.POLICY_OTHERS, settings.exec.otherwise)])
        heading(texts.POLICY_RULES)
        own = described(settings.rules)
        pairs(own)
        if not own:
            ui.label(texts.POLICY_NO_RULES).classes("lp-dim")
        heading(texts.POLICY_DEFAULTS)
        pairs(DEFAULTS)
