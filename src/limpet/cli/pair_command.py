"""`limpet pair`: who may talk to the agents, and who asks to."""

from __future__ import annotations

import click

from limpet.cli.database import change
from limpet.cli.group import WORDS, Invocation
from limpet.cli.moments import now_ms, when
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import pairs, say
from limpet.errors import InputError
from limpet.store import peers
from limpet.store.peers import PairingCode, Peer
from limpet.store.sql import Connection

NOBODY = "Nobody yet. Write to your bot: it answers with a code, which `limpet pair approve CODE` lets in."


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def pair(context: click.Context) -> None:
    """Who may talk to the agents. The first one you approve is you, the owner."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@pair.command("list")
@click.pass_obj
def list_command(invocation: Invocation) -> None:
    """Those who may, and the codes that wait."""
    with reading(invocation) as connection:
        known = peers.listed(connection) if connection else []
        codes = peers.codes(connection, now=now_ms()) if connection else []
    if not known and not codes:
        say(NOBODY)
    rows = [(_name(one), f"{one.role} since {when(one.approved)}") for one in known]
    rows += [(code.code, f"asks: {_asker(code)}, until {when(code.expires)}") for code in codes]
    say(pairs(rows)) if rows else None


@pair.command()
@click.argument("code", type=WORDS)
@click.option("--owner", "role", flag_value="owner", help="It is you: may do all that you may.")
@click.option("--peer", "role", flag_value="peer", help="Somebody else, who may talk and little more.")
@click.pass_obj
def approve(invocation: Invocation, *, code: str, role: str | None) -> None:
    """Let in whoever was given CODE."""
    wanted: peers.Role | None = "owner" if role == "owner" else "peer" if role == "peer" else None
    made = change(
        invocation.home(),
        lambda connection: peers.approve(connection, code, role=wanted, by="cli", now=now_ms()),
    )
    if made is None:
        raise InputError(f"There is no open code {code}.", hint="`limpet pair list` shows them; they last an hour.")
    what = "is the owner, and may do all that you may" if made.role == "owner" else "may talk to the agents"
    say(f"{_name(made)} {what}.")


@pair.command()
@click.argument("who", type=WORDS)
@click.pass_obj
def revoke(invocation: Invocation, *, who: str) -> None:
    """Let somebody in no more: WHO is CHANNEL:ACCOUNT:ID as `limpet pair list` shows it, its end, or an open code."""

    def work(connection: Connection) -> str:
        if peers.dismiss(connection, who):
            return f"The code {who.upper()} is void."
        found = [one for one in peers.listed(connection) if who in (one.id, f"{one.channel}:{one.account}:{one.id}")]
        if len(found) != 1:
            raise InputError(
                f"There is no {who}." if not found else f"{who} is several people.",
                hint="`limpet pair list` shows all; write CHANNEL:ACCOUNT:ID.",
            )
        peers.revoke(connection, found[0], now=now_ms())
        return f"{_name(found[0])} may not talk to the agents any more."

    say(change(invocation.home(), work))


def _name(peer: Peer) -> str:
    return f"{peer.channel}:{peer.account}:{peer.id}" + (f" ({peer.name})" if peer.name else "")


def _asker(code: PairingCode) -> str:
    return f"{code.channel}:{code.account}:{code.peer}" + (f" ({code.name})" if code.name else "")
