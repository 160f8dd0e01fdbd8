"""`limpet token`: what other programs show at the API."""

from __future__ import annotations

import re

import click
from msgspec import convert

from limpet.cli.database import change
from limpet.cli.group import WORDS, Invocation
from limpet.cli.moments import now_ms, when
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import pairs, say
from limpet.config.agents import agent_names
from limpet.errors import InputError
from limpet.store import tokens
from limpet.store.tokens import SCOPES, Scope, Token

DAY = 86_400_000
OWN = "server"
"""Stands for the token of the server itself."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}")


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.pass_context
def token(context: click.Context) -> None:
    """Tokens for programs that use the API of `limpet gateway`. docs/api.md says how."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@token.command("list")
@click.pass_obj
def list_command(invocation: Invocation) -> None:
    """All tokens, what each may do, and when it was used last."""
    with reading(invocation) as connection:
        found = tokens.listed(connection) if connection else []
    if not found:
        say("There are no tokens. `limpet token create NAME` makes one.")
        return
    say(pairs([(one.name, _line(one)) for one in found]))


@token.command()
@click.argument("name", type=WORDS)
@click.option("--scope", default="chat,read", show_default=True, help=f"What it may, of {', '.join(SCOPES)}.")
@click.option("--agent", default="", metavar="ID", help="Only with this agent.")
@click.option("--days", type=click.IntRange(1, 36_500), default=None, help="How long it is good for.")
@click.pass_obj
def create(invocation: Invocation, *, name: str, scope: str, agent: str, days: int | None) -> None:
    """Make a token called NAME. It is shown once."""
    if not _NAME.fullmatch(name) or name == OWN:
        raise InputError(
            f"{name!r} is no name for a token.",
            hint="Use up to 41 of a-z, 0-9, _ and -, beginning with a letter or digit; `server` is taken.",
        )
    if agent and agent not in (known := agent_names(invocation.settings().settings)):
        raise InputError(f"There is no agent {agent}.", hint=f"There are: {', '.join(known)}.")
    scopes, now, home = _scopes(scope), now_ms(), invocation.home()
    expires = now + days * DAY if days else 0
    if not home.database.exists():
        raise InputError("There is no database yet.", hint="Start `limpet gateway` once, or `limpet onboard`.")
    made = change(
        home,
        lambda connection: tokens.create(connection, name, scopes=scopes, agent=agent, expires=expires, now=now),
    )
    if not made:
        raise InputError(f"There is a token {name} already.", hint=f"`limpet token revoke {name}` ends it.")
    say(made)
    say("Keep it: it is not shown again. Send it as `Authorization: Bearer TOKEN`.", error=True)


@token.command()
@click.argument("name", type=WORDS)
@click.pass_obj
def revoke(invocation: Invocation, *, name: str) -> None:
    """Make the token NAME worthless, at once."""
    home = invocation.home()
    if not (home.database.exists() and change(home, lambda connection: tokens.revoke(connection, name, now=now_ms()))):
        raise InputError(f"There is no token {name}.", hint="`limpet token list` shows all.")
    say(f"The token {name} is void.")


def _scopes(text: str) -> tuple[Scope, ...]:
    """Raises `InputError` for one that there is not."""
    wanted = [one.strip() for one in text.split(",") if one.strip()]
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InputError(f"{text!r} are no scopes.", hint=f"There are: {', '.join(SCOPES)}; several with commas.")
    return convert([one for one in SCOPES if one in wanted], tuple[Scope, ...])


def _line(one: Token) -> str:
    said = [", ".join(one.scopes), f"agent {one.agent}" if one.agent else "all agents"]
    if one.expires:
        said.append(f"{'expired' if one.expires <= now_ms() else 'until'} {when(one.expires)}")
    said.append(f"used {when(one.used)}" if one.used else "never used")
    return "; ".join(said)
