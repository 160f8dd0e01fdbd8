"""`limpet memory`: what is remembered."""

from __future__ import annotations

import click

from limpet.cli.memory_index import INDEX_COMMANDS


@click.group("memory", context_settings={"help_option_names": ["-h", "--help"]})
def memory_group() -> None:
    """Search what is remembered: notes in the workspace, and earlier conversations."""


for command in INDEX_COMMANDS:
    memory_group.add_command(command)
