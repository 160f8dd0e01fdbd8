"""`limpet skills`: which there are, what they lack, what was granted to them, and whether they are as installed."""

from __future__ import annotations

import os
import time

import click

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.skills_install import COMMANDS
from limpet.cli.terminal import pairs, say
from limpet.config.load import load_settings
from limpet.config.vault import Vault
from limpet.errors import InputError
from limpet.net.client import Web
from limpet.net.guard import Guard, NetworkRules
from limpet.sandbox.run import Sandbox
from limpet.skills.configured import shelf_of
from limpet.skills.records import Granted, Records, digest_of, files_of, load, save
from limpet.skills.shelf import Shelf, changes_of
from limpet.skills.skill import Skill
from limpet.tools.builtin import builtin
from limpet.tools.web_search import SearchSettings


@click.group("skills", context_settings={"help_option_names": ["-h", "--help"]})
def skills() -> None:
    """Folders that say how something is done. Nothing of a skill runs by itself."""


for command in COMMANDS:
    skills.add_command(command)


@skills.command("list")
@click.pass_obj
def list_skills(invocation: Invocation) -> None:
    """The skills there are, where each was found, and what it lacks."""
    shelf = open_shelf(invocation)
    rows = [(one.name, f"{one.origin}; {shelf.state(one)}") for one in shelf.found.skills]
    if not rows:
        say("There are no skills. docs/skills.md says how to add one.")
        return
    say(pairs(sorted(rows)))
    for one in shelf.found.shadowed:
        say(f"{one.name} in {one.folder} does not count: there is one of that name before it", error=True)


@skills.command("info")
@click.argument("name", type=WORDS)
@click.pass_obj
def info(invocation: Invocation, name: str) -> None:
    """What the skill NAME is for, where it came from, what it needs and brings."""
    shelf, records = open_shelf(invocation), load(invocation.home().root)
    one = find(shelf, name)
    known = records.installed.get(one.name)
    rows = [("about", one.description), ("state", shelf.state(one)), ("file", os.path.join(one.folder, "SKILL.md"))]
    rows += [("homepage", one.front.homepage)] if one.front.homepage else []
    rows += [("installed from", f"{known.source} {known.revision}".strip())] if known else []
    rows += [("needs", one.front.needs.told())]
    rows += [("tools", ", ".join(tool.name for tool in one.tools))] if one.tools else []
    rows += [("trigger words", ", ".join(one.front.triggers))] if one.front.triggers else []
    rows += [("command", f"/{one.command}")] if one.front.invocable else []
    say(pairs(rows))


@skills.command("check")
@click.pass_obj
def check(invocation: Invocation) -> int:
    """What is wrong in files of skills, and which are not as they were installed. Exit code 1 when something is."""
    shelf, records = open_shelf(invocation), load(invocation.home().root)
    lines = [str(fault) for fault in shelf.found.faults]
    for name, known in records.installed.items():
        lines += [f"{name}: {line} since it was installed" for line in changes_of(known.folder, known.files)]
        lines += [f"{name}: in quarantine: {known.quarantine}"] if known.quarantine else []
    for name, grant in records.granted.items():
        one = next((skill for skill in shelf.found.skills if skill.name == name), None)
        if one is not None and digest_of(files_of(one.folder)) != grant.digest:
            lines.append(f"{name}: changed since it was granted {grant.needs.told()}, so it has nothing of that now")
    for line in lines:
        say(line)
    say(f"{len(shelf.found.skills)} looked at, {len(lines)} found")
    return 1 if lines else 0


@skills.command("grant")
@click.argument("name", type=WORDS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def grant(invocation: Invocation, name: str, yes: bool) -> None:
    """Give the skill NAME what it says it needs, as long as its files stay as they are."""
    shelf, home = open_shelf(invocation), invocation.home()
    one, records = find(shelf, name), load(home.root)
    if one.name in shelf.held:
        raise InputError(f"{one.name} is held back: {shelf.held[one.name]}")
    needs = one.front.needs
    if not needs:
        raise InputError(f"{one.name} needs nothing that has to be granted.")
    say(f"{one.name} asks for: {needs.told()}")
    if not yes and not click.confirm("Grant it?"):
        raise InputError("Nothing was granted.")
    digest = digest_of(files_of(one.folder))
    granted = Granted(digest, needs, at=time.time_ns() // 1_000_000)
    save(home.root, Records(installed=records.installed, granted={**records.granted, one.name: granted}))
    note(home, "skill.changed", one.name, detail=f"granted {needs.told()} to {digest}")
    say("Granted, from the next start of Limpet.")
    settings = load_settings(home.config, os.environ).settings
    if (needs.hosts or needs.secrets) and settings.tools.exec.network != "allow-list":
        say('Commands reach its hosts once tools.exec.network is "allow-list".')
    lacking = [secret for secret in needs.secrets if secret not in Vault(home.root).names()]
    for secret in lacking:
        say(f"The secret {secret} is not kept yet: limpet secrets set {secret}")
    if needs.host:
        say("Each of its commands on the host still asks, unless a rule of policy allows it.")


@skills.command("revoke")
@click.argument("name", type=WORDS)
@click.pass_obj
def revoke(invocation: Invocation, name: str) -> None:
    """Take back what was granted to the skill NAME."""
    home = invocation.home()
    records = load(home.root)
    if name not in records.granted:
        raise InputError(f"Nothing was granted to {name}.")
    left = {one: grant for one, grant in records.granted.items() if one != name}
    save(home.root, Records(installed=records.installed, granted=left))
    note(home, "skill.changed", name, detail="revoked")
    say(f"{name} has nothing of it any more, from the next start of Limpet.")


def open_shelf(invocation: Invocation) -> Shelf:
    """The skills of the home and its workspace."""
    home = invocation.home()
    web = Web(Guard(NetworkRules()))
    names = frozenset(tool.spec.name for tool in builtin(sandbox=Sandbox(), web=web, search=SearchSettings()))
    return shelf_of(load_settings(home.config, os.environ).settings, home, os.environ, has_tool=names.__contains__)


def find(shelf: Shelf, name: str) -> Skill:
    """The skill of that name. Raises `InputError`."""
    one = next((one for one in shelf.found.skills if one.name == name), None)
    if one is None:
        names = ", ".join(sorted(one.name for one in shelf.found.skills)) or "none"
        raise InputError(f"There is no skill {name}. There are: {names}.")
    return next((offered for offered in shelf.offered if offered.name == name), one)
