"""`limpet sessions`: conversations that are or were."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw
import click
import msgspec

from limpet.cli.database import change
from limpet.cli.group import WORDS, Invocation
from limpet.cli.terminal import hand_over, pairs, say
from limpet.errors import InputError
from limpet.session.export import jsonl, markdown
from limpet.store import entries, sessions
from limpet.store.driver import explain
from limpet.store.migrations import MIGRATIONS
from limpet.store.sessions import SessionRow
from limpet.store.sql import Connection


@click.group("sessions", context_settings={"help_option_names": ["-h", "--help"]})
def sessions_group() -> None:
    """List, show and export conversations. Nothing here changes them."""


@sessions_group.command("list")
@click.option("--limit", default=50, show_default=True, help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_command(invocation: Invocation, limit: int, as_json: bool) -> None:
    """The conversations, newest first."""
    with reading(invocation) as connection:
        rows = sessions.recent(connection, limit=limit) if connection else []
    if as_json:
        for row in rows:
            hand_over(msgspec.json.encode({name: getattr(row, name) for name in row.__struct_fields__}).decode() + "\n")
    elif rows:
        say(pairs((row.id, _line(row)) for row in rows))
    else:
        say("There is no conversation yet.")


@sessions_group.command("show")
@click.argument("session", type=WORDS, default="main")
@click.pass_obj
def show_command(invocation: Invocation, session: str) -> None:
    """One conversation as people saw it. SESSION is an id, the beginning of one, a key, or a name (default: main)."""
    with reading(invocation) as connection:
        row = find(connection, session)
        assert connection is not None
        say(markdown(entries.load(connection, row.id)), end="")


@sessions_group.command("export", short_help="Write one conversation out.")
@click.argument("session", type=WORDS, default="main")
@click.option("--format", "form", type=click.Choice(["markdown", "jsonl"]), default="markdown", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of the terminal.")
@click.pass_obj
def export_command(invocation: Invocation, *, session: str, form: str, output: Path | None) -> None:
    """Write one conversation out: Markdown for people, or every entry as a line of JSON."""
    with reading(invocation) as connection:
        row = find(connection, session)
        assert connection is not None
        found = entries.load(connection, row.id)
    text = markdown(found) if form == "markdown" else jsonl(found)
    if output is None:
        hand_over(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}.") from None


@contextmanager
def reading(invocation: Invocation) -> Generator[Connection | None]:
    """The database of the home, read-only; None when there is none yet. Raises `StoreError`.

    One of an older version is brought up to date first.
    """
    path = invocation.home().database
    if not path.exists():
        yield None
        return
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(10_000)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    except apsw.Error as error:
        raise explain(error, str(path)) from error
    try:
        if 0 < _version(connection) < len(MIGRATIONS):
            change(invocation.home(), _version)
        yield connection
    except apsw.Error as error:
        raise explain(error, str(path)) from error
    finally:
        connection.close()


def _version(connection: Connection) -> int:
    return msgspec.convert(connection.execute("PRAGMA user_version").fetchone(), tuple[int])[0]


def find(connection: Connection | None, name: str) -> SessionRow:
    """The session that `name` means. Raises `InputError`."""
    if connection is not None:
        for key in (name, f"agent:main:{name}", f"agent:main:cli:{name}"):
            if row := sessions.live(connection, key):
                return row
        found = [row for row in sessions.recent(connection, limit=1_000_000) if row.id.startswith(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(f"{name} is the beginning of {len(found)} sessions.", hint="Give more of the id.")
    raise InputError(f"There is no session {name}.", hint="`limpet sessions list` shows them.")


def _line(row: SessionRow) -> str:
    state = f"ended ({row.end_reason})" if row.ended else "live"
    return f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(row.updated / 1000))}  {row.key}  {state}"
