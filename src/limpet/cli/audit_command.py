"""`limpet audit`: what changed rights or was removed for good, and whether anybody has touched the record since."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import msgspec

from limpet.cli.group import WORDS, Invocation
from limpet.cli.sessions_command import reading
from limpet.cli.terminal import say
from limpet.errors import InputError
from limpet.store import audit
from limpet.store.audit import Row


@click.group("audit", context_settings={"help_option_names": ["-h", "--help"]})
def audit_group() -> None:
    """What changed who may do what, and what was removed for good: a chain of hashes for each process."""


@audit_group.command("show")
@click.option("--last", type=click.IntRange(1), default=50, show_default=True, help="How many, the newest.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.pass_obj
def show(invocation: Invocation, *, last: int, as_json: bool) -> None:
    """The newest rows, oldest first."""
    with reading(invocation) as connection:
        found = list(audit.rows(connection, last=last)) if connection else []
    if as_json:
        for line in _lines(found):
            say(line)
        return
    for row in found:
        detail = f" ({row.detail[:80]})" if row.detail else ""
        say(f"{datetime.fromtimestamp(row.at / 1000):%Y-%m-%d %H:%M:%S}  {row.act}  {row.subject}{detail}")
    if not found:
        say("Nothing yet.")


@audit_group.command("verify")
@click.option("--head", "known", type=WORDS, default="", help="A head printed earlier, which has to be there still.")
@click.pass_obj
def verify(invocation: Invocation, *, known: str) -> None:
    """Whether a row was changed, moved or taken out. Ends with 1 when one was."""
    with reading(invocation) as connection:
        found = audit.faults(connection) if connection else []
        hashes = [row.hash for row in audit.rows(connection)] if connection else []
    if known and known not in hashes:
        found.append(f"the row with the hash {known} is missing")
    for fault in found:
        say(f"FAULT: {fault}", error=True)
    if found:
        say("Somebody has changed limpet.db; compare it with a backup.", error=True)
        click.get_current_context().exit(1)
    say(f"{len(hashes):,} rows, all chains hold." + (f" Head: {hashes[-1]}" if hashes else ""))
    say("The newest rows could be cut off unnoticed: keep the head elsewhere, and give it with --head.")


@audit_group.command("export")
@click.argument("file", type=click.Path(dir_okay=False), default="-")
@click.pass_obj
def export(invocation: Invocation, file: str) -> None:
    """All rows as JSON lines, to FILE or the output."""
    with reading(invocation) as connection:
        text = "".join(f"{line}\n" for line in _lines(audit.rows(connection))) if connection else ""
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    say(f"{text.count(chr(10)):,} rows are in {file}.")


def _lines(rows: Iterator[Row] | list[Row]) -> Iterator[str]:
    for row in rows:
        yield msgspec.json.encode({name: getattr(row, name) for name in Row.__struct_fields__}).decode()
