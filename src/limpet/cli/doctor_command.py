"""`limpet doctor`: prints findings."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import TypeGuard

import click
import msgspec
from msgspec import Struct

from limpet.cli.doctor import CHECKS, Check, Finding, Fix, Level, Situation, examine
from limpet.cli.doctor_fix import apply, fixes_of
from limpet.cli.group import Invocation, load
from limpet.cli.terminal import Style, hand_over, paint, say, wrapped
from limpet.errors import InputError

MARKS: dict[Level, tuple[str, Style]] = {
    "ok": ("ok", "green"),
    "note": ("note", "plain"),
    "warning": ("warning", "yellow"),
    "broken": ("BROKEN", "red"),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--fix", is_flag=True, help="Mend what can be mended without loss; each change is asked first.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--offline", is_flag=True, help="Ask nobody beyond this machine.")
@click.pass_obj
def doctor(invocation: Invocation, *, as_json: bool, fix: bool, yes: bool, offline: bool) -> int:
    """Look for what is wrong, and say what to do about it. Changes nothing, unless --fix is given.

    Exit code 0: nothing is broken (there may be warnings); 1: something is; 2: wrong usage.
    """
    if yes and not fix:
        raise InputError("--yes goes with --fix.")
    if fix and not yes and (as_json or not sys.stdin.isatty()):
        raise InputError("--fix asks, and there is nobody to ask.", hint="limpet doctor --fix --yes")
    situation = Situation(home=invocation.home(), environ=os.environ, offline=offline)
    checks = [*CHECKS, *named_checks(invocation.checks)]
    findings = asyncio.run(examine(situation, checks))
    made: list[Fixed] = []
    if fix:
        made = mend(fixes_of(findings), ask=not yes)
        if any(not one.fault for one in made):
            findings = asyncio.run(examine(situation, checks))
    broken = sum(finding.level == "broken" for finding in findings)
    if as_json:
        shown: dict[str, object] = {"broken": broken, "findings": [finding.named() for finding in findings]}
        hand_over(msgspec.json.encode(shown | ({"fixed": made} if fix else {})).decode() + "\n")
    else:
        say(report(findings))
    return 1 if broken else 0


class Fixed(Struct, frozen=True):
    """A change that was made; `fault`: why it was not."""

    what: str
    fault: str = ""


def mend(fixes: Sequence[Fix], *, ask: bool) -> list[Fixed]:
    """Make the changes, each said before; those that the person refuses are left out."""
    made: list[Fixed] = []
    for fix in fixes:
        if ask and not click.confirm(f"{fix.told()}?", default=True, err=True):
            continue
        say(f"fix: {fix.told()}", error=True)
        made.append(Fixed(fix.told(), apply(fix)))
        if made[-1].fault:
            say(f"  could not be done: {made[-1].fault}", error=True)
    if not fixes:
        say("There is nothing that --fix could mend.", error=True)
    return made


def is_check(value: object) -> TypeGuard[Check]:
    return callable(value)


def named_checks(targets: Sequence[str]) -> list[Check]:
    """The checks that `module:function` name."""
    checks: list[Check] = []
    for target in targets:
        found = load(target)
        if not is_check(found):
            raise TypeError(f"{target} is no check")
        checks.append(found)
    return checks


def report(findings: Sequence[Finding]) -> str:
    """The findings as lines, each remedy below its own, and a summary."""
    lines: list[str] = []
    for finding in findings:
        mark, style = MARKS[finding.level]
        head = f"{paint(mark, style, stream=sys.stdout)} {finding.check}:"
        lines += [f"{head} {finding.text}"] if finding.level == "ok" else [head, wrapped(finding.text, indent="    ")]
        if finding.remedy:
            lines.append(wrapped(f"-> {finding.remedy}", indent="    "))
    broken = sum(finding.level == "broken" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    lines.append(f"{broken} broken, {warnings} to look at" if broken or warnings else "all is well")
    return "\n".join(lines)
