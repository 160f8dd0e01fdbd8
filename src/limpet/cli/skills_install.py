"""`limpet skills install`, `update`, `remove` and `release`: what was found is shown first, and nothing of it runs."""

from __future__ import annotations

import asyncio
import os
import time

import click

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.load import load_settings
from limpet.config.schema import Settings
from limpet.errors import InputError, ToolError
from limpet.net.client import Web
from limpet.net.guard import Guard, NetworkRules
from limpet.skills.install import Candidate, check_origin, difference, fetched
from limpet.skills.install import install as install_candidate
from limpet.skills.install import release as release_skill
from limpet.skills.install import remove as remove_skill
from limpet.skills.records import Installed, load
from limpet.toolkit.unseen import is_unseen

_SHOWN = 30
"""Findings and faults that are printed."""


@click.command("install")
@click.argument("source", type=WORDS)
@click.option("--name", default="", type=WORDS, help="Which one, where SOURCE has several.")
@click.option("--yes", is_flag=True, help="Do not ask, whatever was found; what is dangerous stays in quarantine.")
@click.option("--force", is_flag=True, help="Replace one of that name that was installed from another source.")
@click.pass_obj
def install(invocation: Invocation, source: str, *, name: str, yes: bool, force: bool) -> None:
    """Install a skill from SOURCE: a folder, a git address (https or ssh, with #BRANCH), a zip, or clawhub:NAME.

    What it could do and what a scan found is shown first. What is dangerous is put into quarantine: it is there, and
    not offered to the model before `limpet skills release`.
    """
    asyncio.run(_install(invocation, source, name, yes=yes, force=force))


@click.command("update")
@click.argument("name", type=WORDS, default="")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def update(invocation: Invocation, name: str, yes: bool) -> int:
    """Fetch NAME, or all that were installed, again from where they came; the differences are shown first.

    One that cannot be fetched is told and does not stop the others. Exit code 1 then.
    """
    installed = load(invocation.home().root).installed
    if name and name not in installed:
        raise InputError(f"{name} was not installed by Limpet.")
    failed = 0
    for one, known in installed.items():
        if name in ("", one):
            try:
                asyncio.run(_install(invocation, known.source, one, yes=yes, before=known))
            except (InputError, ToolError) as error:
                say(f"{one}: {_clean(error.present())}", error=True)
                failed += 1
    if not installed:
        say("No skills were installed.")
    return 1 if failed else 0


@click.command("remove")
@click.argument("name", type=WORDS)
@click.pass_obj
def remove(invocation: Invocation, name: str) -> None:
    """Delete the installed skill NAME, and what was granted to it."""
    remove_skill(invocation.home().root, name)
    note(invocation.home(), "skill.changed", name, detail="removed")
    say(f"{name} is removed.")


@click.command("release")
@click.argument("name", type=WORDS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def release(invocation: Invocation, name: str, yes: bool) -> None:
    """Offer the installed skill NAME as its files are now: it is in quarantine, or was changed by you."""
    home = invocation.home()
    known = load(home.root).installed.get(name)
    if known is not None:
        say(f"{name}: {_clean(known.quarantine) or 'its files may differ from those that were installed'}")
        if not yes and not click.confirm(f"Have you looked at {known.folder}, and shall the agent use it?"):
            raise InputError("Nothing was changed.")
    release_skill(home.root, name)
    note(home, "skill.changed", name, detail=f"released {load(home.root).installed[name].digest}")
    say(f"{name} is offered from the next conversation on.")


COMMANDS = (install, update, remove, release)


async def _install(
    invocation: Invocation,
    source: str,
    name: str,
    *,
    yes: bool,
    force: bool = False,
    before: Installed | None = None,
) -> None:
    home = invocation.home()
    settings = load_settings(home.config, os.environ).settings
    web = _web(settings)
    try:
        async with fetched(source, home.root, web=web, registry=settings.skills.registry) as found:
            candidate = _chosen(found, name, source)
            if before is not None and not _differs(candidate, before):
                say(f"{candidate.skill.name} is as it was installed.")
                return
            _show(candidate)
            if not force:
                check_origin(home.root, candidate)
            if not yes and not await asyncio.to_thread(click.confirm, _question(candidate)):
                raise InputError("Nothing was installed.")
            made = install_candidate(home.root, candidate, at=time.time_ns() // 1_000_000, force=force)
    finally:
        await web.close()
    await asyncio.to_thread(_told, invocation, candidate, made)


def _told(invocation: Invocation, candidate: Candidate, made: Installed) -> None:
    name = candidate.skill.name
    how = "installed in quarantine" if made.quarantine else "installed"
    note(invocation.home(), "skill.changed", name, detail=f"{how} {made.digest} from {made.source}")
    say(f"{name} is {how} in {made.folder}.")
    if made.quarantine:
        say(f"It is not offered. Once you have looked at it: limpet skills release {name}")
    elif candidate.skill.front.needs:
        say(f"It asks for {candidate.skill.front.needs.told()}: limpet skills grant {name}")


def _web(settings: Settings) -> Web:
    net = settings.net
    rules = NetworkRules(allow_cidrs=net.allow_cidrs, allow_hosts=net.allow_hosts, deny_hosts=net.deny_hosts)
    return Web(Guard(rules), proxy=net.proxy)


def _chosen(found: list[Candidate], name: str, source: str) -> Candidate:
    names = ", ".join(sorted(one.skill.name for one in found))
    if not name and len(found) > 1:
        raise InputError(f"{source} has several skills: {names}.", hint="Say which one with --name.")
    chosen = next((one for one in found if name in ("", one.skill.name)), None)
    if chosen is None:
        raise InputError(f"{source} has no skill {name}. It has: {names}.")
    return chosen


def _differs(candidate: Candidate, before: Installed) -> bool:
    """Whether an update brings anything; the differences of the files are shown."""
    if candidate.files == before.files:
        return False
    say(_clean(difference(before.folder, candidate.skill.folder)))
    return True


def _show(candidate: Candidate) -> None:
    """What the skill is and could do, and what was found in it."""
    skill, summary = candidate.skill, candidate.summary
    rows = [
        ("skill", f"{skill.name}: {_clean(skill.description)}"),
        ("from", _clean(f"{candidate.source} {candidate.revision}".strip())),
        ("files", f"{summary.files} of {summary.size:,} bytes together"),
        ("scripts", _clean(", ".join(summary.scripts)) or "none"),
        ("names the hosts", _clean(", ".join(summary.hosts[:20])) or "none"),
        ("asks for", _clean(summary.needs.told())),
        ("tools", _clean(", ".join(summary.tools)) or "none"),
    ]
    say(pairs(rows))
    if candidate.warning:
        say(f"warning: {_clean(candidate.warning)}", error=True)
    told = [str(one) for one in (*candidate.findings, *candidate.faults)]
    for line in told[:_SHOWN]:
        say(_clean(line.replace(f"{skill.folder}/", "")), error=True)
    if len(told) > _SHOWN:
        say(f"and {len(told) - _SHOWN} more", error=True)


def _question(candidate: Candidate) -> str:
    if candidate.quarantine:
        return "There is something dangerous in it. Install it in quarantine?"
    return "Install it in spite of what was found?" if candidate.doubtful else "Install it?"


def _clean(text: str) -> str:
    """`text` so that nothing in it steers the terminal."""
    return "".join(one if one == "\n" or not is_unseen(one) else "\ufffd" for one in text)
