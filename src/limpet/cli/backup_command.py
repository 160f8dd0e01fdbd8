"""`limpet backup` and `limpet restore`: a home in one file, and back."""

from __future__ import annotations

from pathlib import Path

import click

from limpet.cli.backup import Manifest, write_backup
from limpet.cli.backup_read import check_backup, restore
from limpet.cli.group import Invocation
from limpet.cli.moments import now_ms, when
from limpet.cli.terminal import say

NAMED = 20
"""Things left out that are named one by one."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-secrets", is_flag=True, help="Keys and passwords too: keep the file as you keep those.")
@click.pass_obj
def backup(invocation: Invocation, file: Path, *, with_secrets: bool) -> None:
    """Write all of the home to the new FILE: conversations, memory, workspaces, settings. A gateway may run meanwhile.

    Logs, the search index and the browser's profile are not in it. The file is read back and checked before it counts.
    """
    target = file.absolute()
    made = write_backup(target, invocation.home(), invocation.settings(), secrets=with_secrets, now=now_ms())
    check_backup(target, beside=target.parent)
    say(f"{file}: {_summary(made)}. It was read back and is whole.")
    say("It holds your secrets." if made.secrets else "Secrets are not in it (--with-secrets puts them in).")
    _say_left_out(made)


@click.command("restore", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Also when there is a home: it is put aside, whole.")
@click.option("--check", is_flag=True, help="Only look whether FILE is whole and of a version that is known.")
@click.pass_obj
def restore_command(invocation: Invocation, file: Path, *, replace: bool, check: bool) -> None:
    """Make the home that the backup FILE holds. All or nothing: until the last step the home is as it was."""
    home, source = invocation.home(), file.absolute()
    if check:
        say(f"{file} is whole: {_summary(check_backup(source, beside=source.parent))}.")
        return
    manifest, before = restore(source, home, replace=replace)
    say(f"{home.root}: {_summary(manifest)}.")
    if before:
        say(f"The home before lies in {before}. Delete it when all is well.")
    if not manifest.secrets:
        kept = "Those of the home before were kept." if before else "Set them again: limpet secrets set NAME."
        say(f"Secrets are not in the backup. {kept}")
    if home.config != home.root / "config.toml":
        say(f"The settings are in {home.root / 'config.toml'}; {home.config}, which is named here, was not touched.")
    _say_left_out(manifest)
    say("Next: limpet doctor")


def _summary(made: Manifest) -> str:
    size = sum(item.size for item in made.files.values())
    return f"{len(made.files):,} files, {size / 1e6:,.1f} MB, of {when(made.made)} by Limpet {made.limpet}"


def _say_left_out(made: Manifest) -> None:
    for one in made.left_out[:NAMED]:
        say(f"not in it: {one}")
    if len(made.left_out) > NAMED:
        say(f"… and {len(made.left_out) - NAMED} more")
