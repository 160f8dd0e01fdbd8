"""`limpet secrets`: the encrypted store of keys and passwords. Values are never arguments and never shown."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from datetime import datetime

import click

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.load import Loaded
from limpet.config.secrets import SHORTEST, is_reference, resolve, secret_settings
from limpet.config.table import split_key
from limpet.config.vault import Vault
from limpet.errors import ConfigError, InputError, LimpetError


@click.group("secrets", context_settings={"help_option_names": ["-h", "--help"]})
def secrets() -> None:
    """Keep keys and passwords encrypted. Settings hold references to them: secret:NAME."""


@secrets.command("set")
@click.argument("name", type=WORDS)
@click.pass_obj
def set_secret(invocation: Invocation, name: str) -> None:
    """Keep a secret as NAME. The value is asked for without showing it, or read from standard input."""
    vault = _vault(invocation)
    vault.put(name, value := _value(name))
    note(invocation.home(), "secret.changed", name, detail="set")
    say(f"{name} is kept in {vault.path}, its key in {_place(vault)}. Write secret:{name} where it is needed.")
    _warn_of_short(value)


@secrets.command("list")
@click.pass_obj
def list_secrets(invocation: Invocation) -> None:
    """The names, when each was set and which settings use it; never a value."""
    vault, uses = _vault(invocation), dict[str, list[str]]()
    for key, name in _stored(invocation.settings()):
        uses.setdefault(name, []).append(key)
    names = vault.names()
    if not names:
        say("No secrets are kept. `limpet secrets set NAME` keeps one.")
    say(
        pairs((name, f"set {_day(at)}; {_used(uses.get(name, []))}") for name, at in names.items()),
        end="\n" * bool(names),
    )
    for name in sorted(set(uses) - set(names)):
        say(f"missing: {name}, {_used(uses[name])}", error=True)


@secrets.command("rotate")
@click.argument("name", type=WORDS, default="")
@click.pass_obj
def rotate(invocation: Invocation, name: str) -> None:
    """Encrypt everything under a new key; with NAME, give that secret a new value instead."""
    vault = _vault(invocation)
    if name:
        vault.value(name)
        vault.put(name, value := _value(name))
        note(invocation.home(), "secret.changed", name, detail="new value")
        say(f"{name} has a new value. Programs that run have the old one until they start again.")
        _warn_of_short(value)
        return
    count = vault.rotate()
    note(invocation.home(), "secret.changed", "all", detail="new key")
    say(f"{count} secrets are encrypted under a new key, which is in {_place(vault)}.")


@secrets.command("remove")
@click.argument("name", type=WORDS)
@click.pass_obj
def remove(invocation: Invocation, name: str) -> None:
    """Forget the secret NAME."""
    used = [key for key, one in _stored(invocation.settings()) if one == name]
    _vault(invocation).remove(name)
    note(invocation.home(), "secret.changed", name, detail="removed")
    say(f"{name} is forgotten.")
    if used:
        say(f"warning: {', '.join(used)} still names it", error=True)


@secrets.command("test")
@click.argument("name", type=WORDS, default="")
@click.option(
    "--ask", is_flag=True, help="Also ask each provider that uses one a short question, which costs a little."
)
@click.pass_obj
def test(invocation: Invocation, name: str, ask: bool) -> int:
    """Whether each reference in the settings leads to a value; with NAME only that secret, or that setting.

    Exit code 1 when one does not.
    """
    loaded, home = invocation.settings(), invocation.home()
    rows = [(key, one) for key, one in secret_settings(loaded.table) if name in ("", key, one.removeprefix("secret:"))]
    if not rows and name:
        _vault(invocation).value(name)
        say(f"ok {name} can be read; no setting uses it")
        return 0
    failed = 0
    for key, reference in rows:
        try:
            if not resolve(reference, key=key, root=home.root, environ=os.environ):
                raise ConfigError(f"{key}: the value is empty.")
        except ConfigError as error:
            failed += 1
            say(f"FAILED {error.present()}")
            continue
        say(f"ok {key} ({reference if is_reference(reference) else 'in the file itself'})")
    say(f"{len(rows)} looked at, {failed} failed")
    for provider in _providers(key for key, _ in rows) if ask else ():
        failed += _refused(invocation, provider)
    return 1 if failed else 0


def _refused(invocation: Invocation, provider: str) -> bool:
    """Whether the provider does not answer with what is configured; says how it went."""
    from limpet.cli.models_command import try_model  # only when asked for: it opens the whole assistant

    try:
        asyncio.run(try_model(invocation, provider))
    except LimpetError as error:
        say(f"FAILED {provider}: {error.present()}")
        return True
    return False


def _providers(keys: Iterator[str]) -> list[str]:
    found = [split_key(key) for key in keys]
    return list(dict.fromkeys(key[1] for key in found if key[0] == "providers" and len(key) > 2))


def _stored(loaded: Loaded) -> Iterator[tuple[str, str]]:
    """(setting, name) for each reference to the store."""
    for key, reference in secret_settings(loaded.table):
        if reference.startswith("secret:"):
            yield key, reference.removeprefix("secret:").strip()


def _value(name: str) -> str:
    """What was typed, or came on standard input; a line break at its end is none of it."""
    try:
        if sys.stdin.isatty():
            return str(click.prompt(f"Value of {name} (not shown)", hide_input=True))
        return sys.stdin.read().rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError("The value is not UTF-8.", hint="Encode it, for example with base64.") from None


def _warn_of_short(value: str) -> None:
    if len(value) < SHORTEST:
        say(f"warning: under {SHORTEST} characters it is not kept out of logs and messages", error=True)


def _place(vault: Vault) -> str:
    return "the keyring of the system" if vault.place == "keyring" else "a file beside it, for you only"


def _used(keys: list[str]) -> str:
    return f"used by {', '.join(keys)}" if keys else "used by no setting"


def _day(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).strftime("%Y-%m-%d %H:%M")


def _vault(invocation: Invocation) -> Vault:
    return Vault(invocation.home().root)
