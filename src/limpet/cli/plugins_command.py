"""`limpet plugins`: what is installed, and what of it the owner trusts. Nothing of a plug-in runs here."""

from __future__ import annotations

import os

import click

from limpet.cli.database import note
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import pairs, say
from limpet.config.load import load_settings
from limpet.config.schema import PluginsSettings
from limpet.config.write import set_values, unset_value
from limpet.errors import InputError
from limpet.plugins.installed import Plugin, find, installed, normal
from limpet.plugins.loading import why_not


@click.group("plugins", context_settings={"help_option_names": ["-h", "--help"]})
def plugins() -> None:
    """Python packages that add tools and hooks. None is imported before you have trusted it."""


@plugins.command("list")
@click.pass_obj
def list_plugins(invocation: Invocation) -> None:
    """The plug-ins that are installed, or were trusted, and how each is."""
    settings = _settings(invocation)
    found = {plugin.name: plugin for plugin in installed()}
    names = sorted({*found, *settings.trusted})
    if not names:
        say("No plug-ins are installed.")
        return
    say(pairs((name, _state(name, found.get(name), settings)) for name in names))


@plugins.command("info")
@click.argument("name", type=WORDS)
@click.pass_obj
def info(invocation: Invocation, name: str) -> None:
    """What the plug-in NAME offers, its version and the hash of its files."""
    settings = _settings(invocation)
    plugin = _find(name)
    rows = [
        ("version", plugin.version),
        ("about", plugin.summary or "says nothing of itself"),
        ("files", f"sha256 {plugin.digest}" if plugin.digest else "cannot be found"),
        ("state", _state(plugin.name, plugin, settings)),
    ]
    say(pairs([*rows, *((entry.group, f"{entry.name} = {entry.value}") for entry in plugin.entries)]))


@plugins.command("trust")
@click.argument("name", type=WORDS)
@click.pass_obj
def trust(invocation: Invocation, name: str) -> None:
    """Let the plug-in NAME run inside Limpet, with all that Limpet may do, as long as its files stay as they are."""
    plugin = _find(name)
    if not plugin.digest:
        raise InputError(f"The files of {plugin.name} cannot be found, so it cannot be told what you would trust.")
    where = ("plugins", "trusted", plugin.name)
    values: dict[tuple[str, ...], object] = {(*where, "version"): plugin.version, (*where, "digest"): plugin.digest}
    set_values(invocation.home().config, values)
    note(invocation.home(), "plugin.changed", plugin.name, detail=f"trusted {plugin.version} {plugin.digest}")
    say(f"{plugin.name} {plugin.version} is trusted. It is loaded by the next start of Limpet.")


@plugins.command("untrust")
@click.argument("name", type=WORDS)
@click.pass_obj
def untrust(invocation: Invocation, name: str) -> None:
    """Load the plug-in NAME no more."""
    if not unset_value(invocation.home().config, ("plugins", "trusted", normal(name))):
        raise InputError(f"{name} is not trusted. `limpet plugins list` shows which are.")
    note(invocation.home(), "plugin.changed", normal(name), detail="no longer trusted")
    say(f"{normal(name)} is not trusted any more. What runs already has it until it ends.")


def _settings(invocation: Invocation) -> PluginsSettings:
    return load_settings(invocation.home().config, os.environ).settings.plugins


def _find(name: str) -> Plugin:
    plugin = find(name)
    if plugin is None:
        names = ", ".join(one.name for one in installed()) or "none"
        raise InputError(f"There is no plug-in {name}. Installed are: {names}.")
    return plugin


def _state(name: str, plugin: Plugin | None, settings: PluginsSettings) -> str:
    offers = ", ".join(f"{entry.group.partition('.')[2]} {entry.name}" for entry in plugin.entries) if plugin else ""
    said = f"{plugin.version}: {offers}; " if plugin else ""
    if name not in settings.trusted:
        return f"{said}not trusted, never imported"
    return said + (why_not(plugin, settings.trusted[name]) or "trusted")
