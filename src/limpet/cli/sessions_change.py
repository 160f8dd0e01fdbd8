"""`limpet sessions`: what changes conversations. Nothing is deleted but on the owner's word."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from limpet.assistant import branching, keeping
from limpet.assistant.commands_tree import FILES, went_back
from limpet.assistant.keeping import Records
from limpet.assistant.services import Services
from limpet.cli.door import Entrance, Nobody, opener
from limpet.cli.group import WORDS, Invocation
from limpet.cli.sessions_find import find, reading
from limpet.cli.terminal import say
from limpet.cli.view import TerminalView
from limpet.errors import InputError
from limpet.session import branch, erase, keys
from limpet.store import blobs, entries, sessions
from limpet.store.sessions import SessionRow
from limpet.types.entry import Label, Leaf
from limpet.undo.forget import forget

UNREACHED = (
    "Not reached: what the model's provider keeps, exports, archives, backups of the disk, what other conversations "
    "quote of it, and files in the workspace with their copies for /rollback."
)


@asynccontextmanager
async def opened(invocation: Invocation) -> AsyncGenerator[Services]:
    """The services of this process, for a command that needs no model."""
    view = TerminalView(sys.stdout, sys.stderr, live=False)
    entrance = Entrance(emit=view.emit, approvals=Nobody(), announce=False)
    async with opener(invocation)(invocation, entrance) as services:
        yield services


@click.command("fork")
@click.argument("session", type=WORDS, default="main")
@click.option("--at", "place", type=WORDS, default="", metavar="ENTRY", help="Up to here: an entry's id, or a label.")
@click.option("--name", type=WORDS, required=True, help="What the copy is called: `limpet chat --session NAME`.")
@click.pass_obj
def fork_command(invocation: Invocation, *, session: str, place: str, name: str) -> None:
    """Copy a conversation, live or ended, into a new one that goes on from there."""
    row = _found(invocation, session)

    async def main() -> str:
        async with opened(invocation) as services:
            log = services.store.read(lambda connection: entries.load(connection, row.id))
            leaf = branch.target(log, place) if place else services.store.read(lambda c: sessions.leaf(c, row.id))
            return await branching.fork(services, row, leaf, key=keys.cli(row.agent, name))

    say(f"{asyncio.run(main())} is a copy of {row.id}: limpet chat --session {name}")


@click.command("label")
@click.argument("session", type=WORDS)
@click.argument("text", type=WORDS)
@click.option(
    "--at", "place", type=WORDS, default="", metavar="ENTRY", help="An entry's id. Default: the newest message."
)
@click.pass_obj
def label_command(invocation: Invocation, *, session: str, text: str, place: str) -> None:
    """Name a place of a conversation, to come back to with `rewind`."""
    row, label = _found(invocation, session), branch.check_label(text)

    async def main() -> None:
        async with opened(invocation) as services:
            log = services.store.read(lambda connection: entries.load(connection, row.id))
            target = branch.target(log, place) if place else branch.labelled(log)
            await branching.append(services, row, Label(target=target, label=label))

    asyncio.run(main())
    say(f"Labelled {label}.")


@click.command("rewind")
@click.argument("session", type=WORDS)
@click.argument("place", type=WORDS, default="")
@click.pass_obj
def rewind_command(invocation: Invocation, *, session: str, place: str) -> None:
    """Go back in a conversation. What came later is kept, files are as they were left.

    PLACE is the number of a message of yours (1 is the newest; it is left too), a label, or an entry's id. Without it
    the places are listed.
    """
    row = _found(invocation, session)

    async def main() -> str:
        async with opened(invocation) as services:
            log = services.store.read(lambda connection: entries.load(connection, row.id))
            if not place:
                return branch.listing(log) or "Nothing was said there yet."
            await branching.append(services, row, Leaf(branch.target(log, place)))
            return f"{went_back(services.store.read(lambda c: entries.load(c, row.id)))} {FILES}"

    say(asyncio.run(main()))


@click.command("delete")
@click.argument("session", type=WORDS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--no-archive", is_flag=True, help="Keep no copy in the archive folder of the home.")
@click.pass_obj
def delete_command(invocation: Invocation, *, session: str, yes: bool, no_archive: bool) -> None:
    """Delete a conversation, after it was written into an archive. What it cost stays in `limpet usage`."""
    row = _found(invocation, session)
    _confirm(f"Delete {row.key} ({row.id})?", yes=yes)

    async def main() -> str:
        async with opened(invocation) as services:
            folder = "" if no_archive else services.rules.keeping.archive
            records = Records(services.store, services.owner, services.rules.keeping.blobs, folder)
            path, removed = await keeping.delete(records, row, now=services.clock.now(), why="deleted by the owner")
            await keeping.sweep(services.store)
            await _sweep_index(services)
            kept = f"Its archive is {path}." if path else "No copy was kept."
            return f"Deleted {row.id}: {removed.entries} entries. {kept}"

    say(asyncio.run(main()))


@click.command("erase", short_help="Make unreadable what was said.")
@click.argument("session", type=WORDS)
@click.option("--entry", type=WORDS, default="", metavar="ENTRY", help="Only one entry (its id; `show --ids`).")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def erase_command(invocation: Invocation, *, session: str, entry: str, yes: bool) -> None:
    """Erase what was said in a conversation, for good, with its copies in forks and the summaries made of it.

    Only its hash and its place stay. Says what it could not reach.
    """
    row = _found(invocation, session)
    _confirm(
        f"Erase {'the entry ' + entry + ' of ' if entry else ''}{row.key} ({row.id}) for good, forks' copies too?",
        yes=yes,
    )

    async def main() -> list[str]:
        async with opened(invocation) as services:
            log = services.store.read(lambda connection: entries.load(connection, row.id))
            name, now = branch.entry_id(log, entry) if entry else "", services.clock.now()
            removed = await services.store.write(
                lambda connection: erase.erase(connection, row.id, name, owner=services.owner, now=now)
            )
            blobs.remove(services.rules.keeping.blobs, removed.blobs)
            scrubbed = await services.store.scrub()
            if services.undo is not None:
                await forget(services.undo.copies, removed.turns)
            await _sweep_index(services)
            return _report(removed, row, scrubbed=scrubbed, workspace=services.workspace, home=invocation.home().root)

    say("\n".join(asyncio.run(main())))


async def _sweep_index(services: Services) -> None:
    """Take what is gone out of the index of the memory too. Raises `StoreError`."""
    if services.library is not None:
        await services.library.status()


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.pass_obj
def prune_command(invocation: Invocation, *, dry_run: bool) -> None:
    """Archive and delete what is older than the settings say; happens by itself once a day."""

    async def main() -> list[str]:
        async with opened(invocation) as services:
            now = services.clock.now()
            found = services.store.read(lambda connection: keeping.due(connection, services.rules.keeping, now=now))
            lines = [f"{row.id}  {row.key}  ended ({row.end_reason})" for row in found.sessions]
            lines += [str(path) for path in found.archives]
            if dry_run:
                return [*lines, f"{len(lines)} would go."]
            records = Records(
                services.store, services.owner, services.rules.keeping.blobs, services.rules.keeping.archive
            )
            gone = await keeping.prune(records, services.rules.keeping, now=now)
            return [*lines, f"{gone} gone."]

    say("\n".join(asyncio.run(main())))


CHANGES = (fork_command, label_command, rewind_command, delete_command, erase_command, prune_command)


def _found(invocation: Invocation, session: str) -> SessionRow:
    with reading(invocation) as connection:
        return find(connection, session)


def _confirm(question: str, *, yes: bool) -> None:
    """Raises `InputError` where there is nobody to ask, `click.Abort` on no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{question} There is nobody to ask.", hint="Say so with --yes.")
    click.confirm(question, abort=True, err=True)


def _report(removed: erase.Removed, row: SessionRow, *, scrubbed: bool, workspace: str, home: Path) -> list[str]:
    """What was erased, and what was not."""
    count = len(removed.sessions)
    lines = [f"Erased {removed.entries} entries in {count} conversation{'' if count == 1 else 's'}, for good."]
    if removed.blobs:
        lines.append(f"Deleted {len(removed.blobs)} attachments and long outputs.")
    if not scrubbed:
        lines.append(
            "limpet.db-wal still holds old pages, another process reads there; they go with its next checkpoint."
        )
    lines.append(UNREACHED)
    notes = [*removed.files, *(path.relative_to(workspace).as_posix() for path in _notes(Path(workspace), row.id))]
    if notes:
        lines.append("Notes in the workspace that may tell of it: " + ", ".join(dict.fromkeys(notes)))
    if (home / "history").exists():
        lines.append(f"What was typed at the prompt of `limpet chat` stands in {home / 'history'} too.")
    copies = [path.name for path in sorted(home.glob("limpet.db.*.bak"))]
    if copies:
        lines.append("Copies of the database from before upgrades: " + ", ".join(copies))
    return lines


def _notes(workspace: Path, session: str) -> list[Path]:
    """The files of notes that name a session."""
    found: list[Path] = []
    for path in sorted((workspace / "memory").rglob("*.md")):
        if path.is_symlink() or not path.is_file():
            continue
        if session in path.name or session in path.read_text("utf-8", errors="replace"):
            found.append(path)
    return found
