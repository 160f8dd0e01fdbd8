"""`limpet outbox`: what is on its way to chats, and what did not arrive."""

from __future__ import annotations

import click
import msgspec

from limpet.cli.database import change
from limpet.cli.group import Invocation
from limpet.cli.moments import now_ms, when
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import hand_over, pairs, say
from limpet.errors import InputError
from limpet.store import outbox
from limpet.types.envelope import OutboxRow, OutboxState

OPEN: tuple[OutboxState, ...] = ("queued", "attempting")
DEAD: tuple[OutboxState, ...] = ("unknown", "failed", "expired")
BEGINNING = 60
IDS = click.IntRange(min=1)


@click.group("outbox", context_settings={"help_option_names": ["-h", "--help"]})
def outbox_group() -> None:
    """What is on its way to chats, and what did not arrive.

    `unknown` may have arrived and is never sent again by itself.
    """


@outbox_group.command("list")
@click.option("--all", "every", is_flag=True, help="What has arrived, too; the newest fifty.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_command(invocation: Invocation, *, every: bool, as_json: bool) -> None:
    """What waits and what did not arrive, newest first."""
    states: tuple[OutboxState, ...] = (*OPEN, *DEAD, "sent") if every else (*OPEN, *DEAD)
    with reading(invocation) as connection:
        rows = outbox.listed(connection, states) if connection else []
    if as_json:
        for row in rows:
            hand_over(msgspec.json.encode(row).decode() + "\n")
    elif not rows:
        say("Nothing waits, and everything has arrived.")
    else:
        say(pairs((str(row.id), _line(row)) for row in rows))


@outbox_group.command()
@click.argument("ids", type=IDS, nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def retry(invocation: Invocation, *, ids: tuple[int, ...]) -> None:
    """Send after all what did not arrive, or may not have."""
    now = now_ms()
    for one in ids:
        if not change(invocation.home(), lambda connection, one=one: outbox.retry(connection, one, now=now)):
            raise InputError(f"{one} has not failed, or there is none.", hint="`limpet outbox list` shows them.")
        say(f"{one} is sent again, by the gateway.")


@outbox_group.command()
@click.argument("ids", type=IDS, nargs=-1, required=True, metavar="ID...")
@click.pass_obj
def drop(invocation: Invocation, *, ids: tuple[int, ...]) -> None:
    """Do not send what waits; forget what failed."""
    for one in ids:
        if not change(invocation.home(), lambda connection, one=one: outbox.drop(connection, one)):
            raise InputError(f"{one} does not wait and has not failed.", hint="`limpet outbox list` shows them.")
        say(f"{one} is not sent.")


def _line(row: OutboxRow) -> str:
    text = " ".join(row.text.split())
    said = f"{text[:BEGINNING]}…" if len(text) > BEGINNING else text
    why = f": {row.error}" if row.error else ""
    tries = f", {row.attempts} tries" if row.attempts > 1 else ""
    return f"{row.state}{why}{tries} · {row.address.channel} {row.address.chat} · {when(row.created)} · {said}"
