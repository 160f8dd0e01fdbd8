"""`limpet doctor`: prints findings."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import TypeGuard

import click
import msgspec

from limpet.cli.doctor import CHECKS, Check, Finding, Level, Situation, examine
from limpet.cli.group import Invocation, load
from limpet.cli.terminal import Style, hand_over, paint, say, wrapped

MARKS: dict[Level, tuple[str, Style]] = {
    "ok": ("ok", "green"),
    "note": ("note", "plain"),
    "warning": ("warning", "yellow"),
    "broken": ("BROKEN", "red"),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def doctor(invocation: Invocation, as_json: bool) -> int:
    """Look for what is wrong, and say what to do about it. Exit code 1 when something is broken."""
    situation = Situation(home=invocation.home(), environ=os.environ)
    findings = asyncio.run(examine(situation, [*CHECKS, *named_checks(invocation.checks)]))
    broken = sum(finding.level == "broken" for finding in findings)
    if as_json:
        hand_over(msgspec.json.encode({"broken": broken, "findings": findings}).decode() + "\n")
    else:
        say(report(findings))
    return 1 if broken else 0


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
