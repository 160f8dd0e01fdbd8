"""`limpet approvals`: what waits for the owner's word, and what was said yes to for good."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import click
import msgspec

from limpet.assistant.approvals import TERMINAL, settle
from limpet.cli.group import WORDS, Invocation
from limpet.cli.sessions_find import reading
from limpet.cli.terminal import hand_over, pairs, say, wrapped
from limpet.config.paths import Home
from limpet.errors import InputError
from limpet.store import approvals as rows
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.approval import Approval, Reply, Word

GOES_ON = "Its turn goes on at once where the conversation is open, else when it is opened next (limpet chat)."
STANDS = {
    "once": "approved",
    "always": "approved for good",
    "deny": "denied",
    "answer": "answered",
    "expired": "expired",
    "ended": "its turn ended first",
}


@click.group("approvals", context_settings={"help_option_names": ["-h", "--help"]})
def approvals() -> None:
    """What waits for your word, and what you said yes to for good. ID may be the beginning of one."""


@approvals.command("list")
@click.option("--always", "shown", flag_value="always", help="What you said yes to for good.")
@click.option("--all", "shown", flag_value="all", help="The newest fifty, decided ones too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_obj
def list_command(invocation: Invocation, *, shown: str | None, as_json: bool) -> None:
    """What waits for a word, newest first."""
    which = "always" if shown == "always" else "all" if shown == "all" else "open"
    now = _now()
    with reading(invocation) as connection:
        found = rows.recent(connection, which, now=now) if connection else []
    if as_json:
        for one in found:
            hand_over(msgspec.json.encode(one).decode() + "\n")
    elif not found:
        say("Nothing." if shown else "Nothing waits for your word.")
    else:
        say(pairs((one.id, f"{one.wanted.plan} ({stands(one, now)})") for one in found))


@approvals.command("show")
@click.argument("name", type=WORDS, metavar="ID")
@click.pass_obj
def show(invocation: Invocation, *, name: str) -> None:
    """The whole plan, who wants it and why."""
    with reading(invocation) as connection:
        one = _find(connection, name)
    wanted = one.wanted
    say(wrapped(wanted.plan))
    say(
        pairs(
            [
                ("id", one.id),
                ("tool", wanted.tool),
                ("why", wanted.reason),
                ("choices", ", ".join(wanted.choices)),
                ("conversation", f"{one.key} ({one.session}), turn {one.turn}"),
                ("hash", wanted.hash),
                ("asked", _when(one.created)),
                ("expires", _when(one.expires)),
                ("stands", stands(one, _now())),
            ]
        )
    )


def stands(one: Approval, now: int) -> str:
    """How it stands, in words."""
    if one.outcome == "":
        return f"waits until {_when(one.expires)}" if one.expires > now else STANDS["expired"]
    if one.revoked:
        return f"revoked {_when(one.revoked)}"
    return f"{STANDS[one.outcome]} {_when(one.at)}" + (f" by {one.by}" if one.by else "")


@approvals.command("approve")
@click.argument("name", type=WORDS, metavar="ID")
@click.option("--always", is_flag=True, help="From now on, without asking, but only exactly this plan.")
@click.pass_obj
def approve(invocation: Invocation, *, name: str, always: bool) -> None:
    """Say yes."""
    _decide(invocation, name, "always" if always else "once")


@approvals.command("deny")
@click.argument("name", type=WORDS, metavar="ID")
@click.pass_obj
def deny(invocation: Invocation, *, name: str) -> None:
    """Say no."""
    _decide(invocation, name, "deny")


@approvals.command("answer")
@click.argument("name", type=WORDS, metavar="ID")
@click.argument("text", type=WORDS)
@click.pass_obj
def answer(invocation: Invocation, *, name: str, text: str) -> None:
    """Answer a question."""
    _decide(invocation, name, "answer", text=text)


@approvals.command("revoke")
@click.argument("name", type=WORDS, metavar="ID")
@click.pass_obj
def revoke(invocation: Invocation, *, name: str) -> None:
    """End a yes that was for good."""
    with reading(invocation) as connection:
        one = _find(connection, name)

    def work(connection: Connection) -> None:
        if not rows.revoke(connection, one.id, now=_now()):
            raise InputError(f"{one.id} is no yes for good that is in force.")

    asyncio.run(_change(invocation.home(), work))
    say(f"From now on it is asked for again: {one.wanted.plan}")


def _decide(invocation: Invocation, name: str, word: Word, *, text: str = "") -> None:
    with reading(invocation) as connection:
        one = _find(connection, name)

    def work(connection: Connection) -> None:
        settle(connection, one.id, Reply(word, text), who=TERMINAL, now=_now())

    asyncio.run(_change(invocation.home(), work))
    say(f"{STANDS[word].capitalize()}: {one.wanted.plan}")
    say(GOES_ON, error=True)


def _find(connection: Connection | None, name: str) -> Approval:
    found = rows.matching(connection, name) if connection is not None and name else []
    if len(found) == 1:
        return found[0]
    many = f"{name} begins several: {', '.join(one.id for one in found)}." if found else f"There is no approval {name}."
    raise InputError(many, hint="limpet approvals list --all shows them.")


async def _change(home: Home, work: Callable[[Connection], None]) -> None:
    """Commit `work` and wake the processes that wait for it. Raises what `work` raises, and `StoreError`."""
    owner = Owner(str(home.run))
    try:
        store = Store.open(str(home.database), process=owner.name)
        try:
            nudges = Nudges(owner, store)
            try:
                await store.write(work)
                nudges.send()
            finally:
                nudges.close()
        finally:
            await store.close()
    finally:
        owner.close()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
