"""Agents with their tools, skills with what was found in them, and servers of further tools."""

from __future__ import annotations

import os

from nicegui import ui

from limpet.config.agents import settings_of
from limpet.config.paths import find_workspace
from limpet.mcp.health import health
from limpet.mcp.kept import Records
from limpet.mcp.spec import spec_of
from limpet.skills import records
from limpet.skills.configured import shelf_of
from limpet.skills.scan import scan
from limpet.skills.shelf import Shelf
from limpet.skills.skill import Skill
from limpet.types.ports import Tool
from limpet.webui import texts
from limpet.webui.desk import Desk
from limpet.webui.parts import heading, pairs, sheet


async def show(desk: Desk) -> None:
    """All agents; skills and servers are those of the main one."""
    settings, home = desk.agents.settings, desk.home
    tools: dict[str, list[Tool]] = {}
    models: dict[str, str] = {}
    for name in desk.agents.names:
        async with desk.agents.use(name) as services:
            tools[name] = list(services.tools)
        models[name] = settings_of(settings, name).agent.model or texts.AGENT_CHOSEN
    with sheet(texts.NAV["/agents"][0]):
        for name, own in tools.items():
            with ui.element("div").classes("lp-panel"):
                ui.label(name).classes("lp-title")
                workspace = str(find_workspace(settings_of(settings, name).agent.workspace, home))
                pairs([(texts.AGENT_MODEL, models[name]), (texts.AGENT_WORKSPACE, workspace)])
                with ui.expansion(texts.AGENT_TOOLS.format(count=len(own))).classes("full-width"):
                    for tool in own:
                        ui.label(tool.spec.name).classes("text-weight-bold")
                        ui.label(tool.spec.description).classes("lp-dim lp-wrap")
        names = frozenset(tool.spec.name for own in tools.values() for tool in own)
        shelf = shelf_of(settings, home, os.environ, has_tool=names.__contains__)
        heading(texts.SKILLS)
        for one in sorted(shelf.found.skills, key=lambda skill: skill.name):
            _skill(desk, shelf, one)
        for fault in shelf.found.faults:
            ui.label(str(fault)).classes("lp-bad lp-wrap")
        heading(texts.SERVERS)
        _servers(desk)


def _skill(desk: Desk, shelf: Shelf, one: Skill) -> None:
    known = records.load(desk.home.root).installed.get(one.name)
    with ui.expansion(f"{one.name} · {shelf.state(one)}").classes("lp-panel"):
        ui.label(one.description).classes("lp-wrap")
        rows = [(texts.SKILL_ORIGIN, one.origin), (texts.SKILL_FILE, os.path.join(one.folder, "SKILL.md"))]
        rows += [(texts.SKILL_SOURCE, f"{known.source} {known.revision}".strip())] if known else []
        rows += [(texts.SKILL_NEEDS, one.front.needs.told())]
        pairs(rows)
        try:
            findings = scan(one.folder)
        except OSError as error:
            ui.label(str(error)).classes("lp-bad")
            return
        for finding in findings:
            ui.label(str(finding)).classes("lp-wrap lp-bad" if finding.level == "danger" else "lp-wrap")
        if not findings:
            ui.label(texts.SKILL_CLEAN).classes("lp-good")


def _servers(desk: Desk) -> None:
    settings, home = desk.agents.settings, desk.home
    kept, workspace = Records(home.mcp), str(find_workspace(settings.agent.workspace, home))
    for name, server in sorted(settings.mcp.servers.items()):
        spec = spec_of(name, server, root=home.root, environ=os.environ, workspace=workspace)
        with ui.element("div").classes("lp-entry"):
            ui.label(name).classes("text-weight-bold")
            ui.label(health(spec, kept, enabled=server.enabled)).classes("lp-dim lp-wrap")
            for tool in kept.read(name).tools:
                ui.label(f"{tool.name}: {tool.description.partition(chr(10))[0]}").classes("lp-wrap full-width")
    if not settings.mcp.servers:
        ui.label(texts.NOTHING).classes("lp-dim")
