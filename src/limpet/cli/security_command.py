"""`limpet security audit`: what is open, and what closes it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack

import click
import msgspec

from limpet.cli.group import Invocation
from limpet.cli.security import Hole, Risk, Scene, examine
from limpet.cli.security_channels import CHECKS as CHANNELS
from limpet.cli.security_files import CHECKS as FILES
from limpet.cli.security_settings import CHECKS as SETTINGS
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import Style, hand_over, paint, say, wrapped
from limpet.config.paths import find_workspace
from limpet.config.secrets import known_secrets
from limpet.errors import StoreError
from limpet.sandbox.probe import examine as probe

CHECKS = (*FILES, *SETTINGS, *CHANNELS)
STYLES: dict[Risk, Style] = {"critical": "red", "warning": "yellow", "note": "plain"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def security() -> None:
    """What is open on this machine and in the settings."""


@security.command("audit")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--fix", is_flag=True, help="Take away what others may do with files of yours; nothing else is changed.")
@click.pass_obj
def audit(invocation: Invocation, *, as_json: bool, fix: bool) -> None:
    """Look for what is open, and say what closes it. Ends with 1 when something critical is."""
    with ExitStack() as stack:
        scene = _scene(invocation, stack)
        holes = examine(scene, CHECKS)
        fixed = [hole for hole in holes if fix and _closed(hole)]
    left = [hole for hole in holes if hole not in fixed]
    critical = sum(hole.risk == "critical" for hole in left)
    if as_json:
        told = {"checks": len(CHECKS), "critical": critical, "holes": left, "fixed": fixed}
        hand_over(msgspec.json.encode(told).decode() + "\n")
    else:
        say(report(left, fixed))
    click.get_current_context().exit(1 if critical else 0)


def _scene(invocation: Invocation, stack: ExitStack) -> Scene:
    loaded, home = invocation.settings(), invocation.home()
    fault = ""
    try:
        connection = stack.enter_context(reading(invocation))
    except StoreError as error:
        connection, fault = None, str(error)
    return Scene(
        home=home,
        settings=loaded.settings,
        table=loaded.table,
        workspace=find_workspace(loaded.settings.agent.workspace, home),
        environ=os.environ,
        sandbox=probe(),
        secrets=known_secrets(loaded.table, root=home.root, environ=os.environ),
        user=os.geteuid(),
        now=time.time(),
        database=connection,
        fault=fault,
    )


def _closed(hole: Hole) -> bool:
    """Whether the hole could be closed, and was."""
    if hole.fix is None:
        return False
    try:
        hole.fix.apply()
    except OSError:
        return False
    return True


def report(left: Sequence[Hole], fixed: Sequence[Hole]) -> str:
    """The holes as lines, each remedy below its own, and a summary."""
    lines = [f"fixed: {hole.text}" for hole in fixed]
    for hole in left:
        lines.append(f"{paint(hole.risk, STYLES[hole.risk], stream=sys.stdout)} {hole.check}:")
        lines += [wrapped(hole.text, indent="    "), wrapped(f"-> {hole.remedy}", indent="    ")]
    counts = [f"{sum(hole.risk == risk for hole in left)} {risk}" for risk in STYLES]
    lines.append(f"{len(CHECKS)} checks: {', '.join(counts)}")
    return "\n".join(lines)
