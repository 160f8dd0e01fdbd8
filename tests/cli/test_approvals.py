"""`limpet approvals`: deciding from a shell, on a home that another process uses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import msgspec

from limpet.cli.ask import reply_of
from limpet.store.approvals import Place, insert
from limpet.store.driver import Store
from limpet.types.approval import Reply, Wanted
from tests.cli.program import run

PLACE = Place(session="s1", key="agent:main:main", turn="t1", agent="main", owner="cli", process="")
FAR = 10**15


def prepared(home: Path) -> str:
    """A home in which one call waits; its id."""
    home.mkdir(exist_ok=True)

    async def main() -> str:
        store = Store.open(str(home / "limpet.db"), process="test")
        try:
            wanted = Wanted("a1.0", "exec", 'exec command="touch X"', "hash", "it acts")
            made = await store.write(lambda connection: insert(connection, wanted, PLACE, now=1, lasts=FAR))
            return made.id
        finally:
            await store.close()

    return asyncio.run(main())


def outcome(home: Path) -> object:
    connection = apsw.Connection(str(home / "limpet.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute("SELECT outcome, by, revoked > 0 FROM approvals").fetchone()
    finally:
        connection.close()


def test_what_waits_is_listed_shown_and_decided(tmp_path: Path) -> None:
    name = prepared(tmp_path)
    assert 'exec command="touch X"' in run(tmp_path, "approvals", "list").out
    assert "it acts" in run(tmp_path, "approvals", "show", name[:5]).out
    ended = run(tmp_path, "approvals", "approve", name, "--always")
    assert (ended.code, outcome(tmp_path)) == (0, ("always", "cli", 0))
    again = run(tmp_path, "approvals", "deny", name)
    assert (again.code, "not open any more" in again.err) == (2, True)
    (line,) = run(tmp_path, "approvals", "list", "--always", "--json").out.splitlines()
    assert msgspec.json.decode(line)["id"] == name
    assert run(tmp_path, "approvals", "revoke", name).code == 0
    assert outcome(tmp_path) == ("always", "cli", 1)


def test_without_a_home_nothing_waits(tmp_path: Path) -> None:
    assert run(tmp_path, "approvals", "list").out == "Nothing waits for your word.\n"
    assert run(tmp_path, "approvals", "deny", "abc").code == 2


def test_what_is_typed_at_a_question() -> None:
    call = Wanted("a1.0", "exec", "exec", "hash", "it acts")
    assert [reply_of(call, typed) for typed in ("y", "A", "", "sure")] == [
        Reply("once"),
        Reply("always"),
        Reply("deny"),
        Reply("deny"),
    ]
    question = Wanted("a1.0", "ask", "Which?", "hash", kind="question", choices=("red", "blue"), only_choices=True)
    assert [reply_of(question, typed) for typed in ("2", "red", "green", "")] == [
        Reply("answer", "blue"),
        Reply("answer", "red"),
        None,
        None,
    ]
