"""`limpet sandbox`: proves what the sandbox claims, on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec

from limpet.cli.group import Invocation
from limpet.cli.terminal import hand_over, pairs, say
from limpet.config.paths import find_workspace
from limpet.egress.claim import only_named_hosts
from limpet.sandbox.claims import Verdict, examine_all
from limpet.sandbox.seatbelt import profile
from limpet.tools.output import Collector
from limpet.tools.protected import present


@click.group("sandbox", context_settings={"help_option_names": ["-h", "--help"]})
def sandbox() -> None:
    """Where commands run, and what that keeps them from."""


@sandbox.command("test")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def test(as_json: bool) -> int:
    """Try to break each claim of the sandbox, and say which hold. Exit code 1 when one does not, or none was tried."""
    verdicts = asyncio.run(_all())
    failed = sum(one.state == "fails" for one in verdicts)
    tried = sum(one.state != "not tried" for one in verdicts)
    if as_json:
        hand_over(msgspec.json.encode({"failed": failed, "tried": tried, "claims": verdicts}).decode() + "\n")
    else:
        say(pairs((one.claim, one.state.upper() + (f": {one.said}" if one.said else "")) for one in verdicts))
        say(f"{tried} of {len(verdicts)} tried, {failed} failed")
    return 1 if failed or tried < 2 else 0


@sandbox.command("seatbelt")
@click.pass_obj
def seatbelt(invocation: Invocation) -> None:
    """Print a profile for sandbox-exec of macOS. It is untested, and nothing uses it by itself."""
    home = invocation.home()
    workspace = Path(find_workspace(invocation.settings().settings.agent.workspace, home)).resolve()
    say(profile(str(workspace), hidden=(str(home.root / "logs"),), readonly=present(str(workspace))), end="")


async def _all() -> list[Verdict]:
    return [*await examine_all(), await only_named_hosts(), _output_is_capped()]


def _output_is_capped() -> Verdict:
    collected = Collector(1_000)
    for _ in range(50):
        collected.add(b"x" * 1_000)
    kept = len(collected.take_text())
    claim = "output is kept up to a cap"
    return Verdict(claim, "holds") if kept < 5_000 else Verdict(claim, "fails", f"{kept} characters were kept")
