"""`limpet status`: how the gateway is, what waits, what it costs today."""

from __future__ import annotations

import click
import msgspec
from msgspec import Struct

from limpet.assistant.commands_subagents import tree
from limpet.cli.group import Invocation
from limpet.cli.moments import ago, now_ms
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import hand_over, pairs, say
from limpet.gateway.status import Snapshot, living
from limpet.gateway.supervisor import Health
from limpet.prompt.runtime import day_start
from limpet.store import outlook, spending, subagents
from limpet.store.outlook import Outlook

NO_GATEWAY = "no gateway runs (`limpet gateway` starts one)"
STALE = 30_000
"""Milliseconds after which a living gateway that says nothing counts as hung."""


class Report(Struct, frozen=True):
    """What `--json` prints. `gateway` is None when none runs; money in micro-dollars; `helpers` are those at work;
    `beats` is how many heartbeats of today have asked a model, and what they cost."""

    gateway: Snapshot | None
    is_hung: bool
    outlook: Outlook
    spent_today: int
    helpers: tuple[str, ...] = ()
    beats: tuple[int, int] = (0, 0)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(invocation: Invocation, *, as_json: bool) -> int:
    """How the gateway and its channels are, what waits, and what was spent today.

    Exit code 1 when something needs you: a channel that is not connected, a message that did not arrive.
    """
    home, now = invocation.home(), now_ms()
    snapshot = living(str(home.run))
    zone = invocation.settings().settings.user.timezone
    with reading(invocation) as connection:
        found = outlook.look(connection) if connection else Outlook()
        today = day_start(now, zone)
        spent = spending.total(connection, since=today) if connection else 0
        beats = spending.by_beats(connection, since=today) if connection else (0, 0)
        helpers = tree(connection, subagents.all_open(connection), now=now) if connection else []
    hung = snapshot is not None and now - snapshot.at > STALE
    report = Report(snapshot, hung, found, spent, tuple(helpers), beats)
    if as_json:
        hand_over(msgspec.json.encode(report).decode() + "\n")
    else:
        say(pairs(_lines(report, now)))
    return int(_needs_you(report))


def _needs_you(report: Report) -> bool:
    down = report.gateway is not None and (
        report.is_hung or report.gateway.faults or any(one.state != "connected" for one in report.gateway.channels)
    )
    return bool(down or report.outlook.dead)


def _lines(report: Report, now: int) -> list[tuple[str, str]]:
    found, gateway = report.outlook, report.gateway
    rows = [("gateway", NO_GATEWAY if gateway is None else _gateway(report, gateway))]
    for one in gateway.channels if gateway else ():
        rows.append((f"{one.channel}:{one.account}", _channel(one, now)))
    for kind, account, why in gateway.faults if gateway else ():
        rows.append((f"{kind}:{account}".rstrip(":"), f"cannot be opened: {why}"))
    early = f", the oldest from {ago(found.inbox_oldest, now)}" if found.inbox else ""
    late = f", the oldest from {ago(found.outbox_oldest, now)}" if found.outbox else ""
    dead = f"; {found.dead} did not arrive in the last week (`limpet outbox list`)" if found.dead else ""
    asked, cost = report.beats
    beats = f"; {asked} heartbeats asked a model, ${cost / 1e6:.4f}" if asked else ""
    rows += [
        ("inbox", f"{found.inbox} waiting{early}"),
        ("outbox", f"{found.outbox} waiting{late}{dead}"),
        ("turns", f"{found.running} running, {found.waiting} waiting for your word"),
        *((f"helper{'s' if len(report.helpers) > 1 else ''}", "\n".join(report.helpers)) for _ in report.helpers[:1]),
        ("spent today", f"${report.spent_today / 1e6:.4f}{beats}"),
    ]
    return rows


def _gateway(report: Report, gateway: Snapshot) -> str:
    process = gateway.owner.partition("-")[0]
    return f"process {process} does not answer" if report.is_hung else f"running, process {process}"


def _channel(one: Health, now: int) -> str:
    why = f": {one.error}" if one.error else ""
    flowed = f"last message in {ago(one.received, now)}, out {ago(one.sent, now)}"
    return f"{one.state}{why} (since {ago(one.since, now)}; {flowed})"
