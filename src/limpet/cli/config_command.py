"""`limpet config get/set/unset/path/validate`."""

from __future__ import annotations

import sys

import click
import msgspec

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import say
from limpet.config import check
from limpet.config.load import load_settings
from limpet.config.secrets import is_reference, is_secret_name
from limpet.config.table import Key, dotted, is_table, leaves, look_up, split_key
from limpet.config.write import set_value, unset_value
from limpet.errors import ConfigError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Read and change settings. Keys are dotted: agent.model, providers.openai.api_key."""


@config.command(short_help="Print what is in force.")
@click.argument("key", type=WORDS, default="")
@click.option("--show-secrets", is_flag=True, help="Print secret values that stand in the file.")
@click.pass_obj
def get(invocation: Invocation, key: str, show_secrets: bool) -> None:
    """Print the value of KEY as it is in force (file, environment, default), or all of them."""
    loaded = invocation.settings()
    effective: object = msgspec.to_builtins(loaded.settings)
    assert is_table(effective)
    wanted = split_key(key) if key else ()
    value = look_up(effective, wanted)
    if value is None and check.type_of(wanted) is None:
        value = look_up(loaded.table, wanted)
        if value is None:
            raise _unknown(wanted)
    if is_table(value):
        for leaf, below in leaves(value, wanted):
            say(f"{dotted(leaf)} = {_shown(leaf, below, show_secrets=show_secrets)}")
    else:
        say(value if isinstance(value, str) and show_secrets else _bare(wanted, value, show_secrets=show_secrets))


def _unknown(key: Key) -> ConfigError:
    near = check.nearest(key)
    return ConfigError(f"There is no setting {dotted(key)}.", hint=f"Did you mean {near}?" if near else "")


def _shown(key: Key, value: object, *, show_secrets: bool) -> str:
    hide = isinstance(value, str) and value and is_secret_name(key[-1]) and not is_reference(value)
    return '"(hidden)"' if hide and not show_secrets else msgspec.json.encode(value).decode()


def _bare(key: Key, value: object, *, show_secrets: bool) -> str:
    text = _shown(key, value, show_secrets=show_secrets)
    return value if isinstance(value, str) and text != '"(hidden)"' else text.strip('"')


@config.command("set")
@click.argument("key", type=WORDS)
@click.argument("value", type=WORDS)
@click.pass_obj
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Write VALUE as the setting KEY. VALUE `-` is read from standard input, for secrets."""
    path = invocation.home().config
    wanted = split_key(key)
    if value == "-":
        value = click.prompt(key, hide_input=True) if sys.stdin.isatty() else sys.stdin.read().rstrip("\r\n")
    set_value(path, wanted, value)
    note(invocation.home(), "config.changed", dotted(wanted))
    say(f"{dotted(wanted)} is set in {path}")
    if is_secret_name(wanted[-1]) and not is_reference(value):
        say("hint: `limpet secrets set NAME` keeps it out of this file; write secret:NAME (or env:, file:)", error=True)


@config.command()
@click.argument("key", type=WORDS)
@click.pass_obj
def unset(invocation: Invocation, key: str) -> None:
    """Take KEY out of the file, so that its default counts again."""
    path = invocation.home().config
    wanted = split_key(key)
    if unset_value(path, wanted):
        note(invocation.home(), "config.changed", dotted(wanted))
        say(f"{dotted(wanted)} is no longer set in {path}")
    elif check.type_of(wanted) is None:
        raise _unknown(wanted)
    else:
        say(f"{dotted(wanted)} was not set")


@config.command()
@click.pass_obj
def path(invocation: Invocation) -> None:
    """Print where the settings are read from; the file need not exist."""
    say(str(invocation.home().config))


@config.command()
@click.pass_obj
def validate(invocation: Invocation) -> None:
    """Check the file; exit 2 when something in it is wrong."""
    home = invocation.home()
    loaded = load_settings(home.config, {})
    for warning in loaded.warnings:
        say(f"warning: {warning}", error=True)
    say(f"{home.config} is fine" if loaded.exists else f"{home.config} does not exist: all defaults are in force")
