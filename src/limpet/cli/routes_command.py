"""`limpet routes`: which agent answers where."""

from __future__ import annotations

import click

from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.channels import accounts
from limpet.errors import InputError
from limpet.gateway import binding
from limpet.types.channel import Arrival
from limpet.types.envelope import Address


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def routes() -> None:
    """Which agent answers where."""


@routes.command("list")
@click.pass_obj
def list_command(invocation: Invocation) -> None:
    """The channels with their agents, and the bindings over them."""
    settings = invocation.settings().settings
    rows = [(f"{kind}:{name}", one.agent) for (kind, name), one in accounts(settings.channels).items()]
    say(pairs(rows) if rows else "No channel is configured: docs/channels says how.")
    for line in binding.explain(settings.gateway.bindings, Arrival(Address("-"), "", "", ""), default="main")[:-1]:
        say(line.rpartition(":")[0])


@routes.command()
@click.argument("channel", type=WORDS)
@click.argument("account", type=WORDS)
@click.option("--peer", type=WORDS, default="", metavar="ID", help="Who says it.")
@click.option("--chat", type=WORDS, default="", metavar="ID", help="Where.")
@click.option("--parent", type=WORDS, default="", metavar="ID", help="What the chat is a thread of.")
@click.option("--space", type=WORDS, default="", metavar="ID", help="The guild or team.")
@click.option("--role", "roles", type=WORDS, multiple=True, metavar="ID", help="What the sender is there; repeatable.")
@click.pass_obj
def explain(
    invocation: Invocation,
    *,
    channel: str,
    account: str,
    peer: str,
    chat: str,
    parent: str,
    space: str,
    roles: tuple[str, ...],
) -> None:
    """Say who answers a message, and why: each binding in the order in which they count."""
    settings = invocation.settings().settings
    own = accounts(settings.channels).get((channel, account))
    if own is None:
        there = ", ".join(":".join(name) for name in accounts(settings.channels)) or "none"
        raise InputError(f"There is no channel {channel} {account}.", hint=f"Configured: {there}.")
    said = Arrival(Address(channel, account, chat), "", peer, "", parent=parent, space=space, roles=roles)
    say("\n".join(binding.explain(settings.gateway.bindings, said, default=own.agent)))
