"""Session keys: which conversation an event belongs to."""

from __future__ import annotations

import pytest

from limpet.session import keys
from limpet.session.keys import Scope
from limpet.session.reach import Visibility, reachable
from limpet.store.sessions import SessionRow
from limpet.types.envelope import Address

TELEGRAM = Address(channel="telegram", account="bot1", chat="42")
DISCORD = Address(channel="discord", account="bot2", chat="9")
LINKS = {"ada": ["telegram:42", "discord:7"], "bob": ["77"]}


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("main", "agent:a:main"),
        ("peer", "agent:a:direct:ada"),
        ("channel-peer", "agent:a:telegram:direct:ada"),
        ("account-channel-peer", "agent:a:telegram:bot1:direct:ada"),
    ],
)
def test_direct_chats_share_a_session_by_scope(scope: Scope, key: str) -> None:
    assert keys.for_event("a", TELEGRAM, "42", in_group=False, scope=scope, links=LINKS) == key


def test_linked_accounts_are_one_person_and_others_are_not() -> None:
    def key(address: Address, sender: str) -> str:
        return keys.for_event("a", address, sender, in_group=False, scope="peer", links=LINKS)

    assert key(TELEGRAM, "42") == key(DISCORD, "7") == "agent:a:direct:ada"
    assert key(TELEGRAM, "7") == "agent:a:direct:7", "a link names its channel"
    assert key(TELEGRAM, "77") == key(DISCORD, "77") == "agent:a:direct:bob"
    assert key(TELEGRAM, "xY") != key(TELEGRAM, "Xy")


def test_groups_and_threads_have_sessions_of_their_own_whoever_speaks() -> None:
    thread = Address(channel="telegram", chat="5", thread="t1")
    assert keys.for_event("a", TELEGRAM, "42", in_group=True, scope="main", links=LINKS) == "agent:a:telegram:group:42"
    assert keys.for_event("a", thread, "42", in_group=True) == "agent:a:telegram:group:5:thread:t1"


def test_the_name_of_a_key_opens_it() -> None:
    assert [keys.name_of(keys.cli("a", name)) for name in ("main", "idea")] == ["main", "idea"]
    assert keys.name_of("cron:daily") == "cron:daily"


def row(name: str, key: str, parent: str = "", agent: str = "a") -> SessionRow:
    return SessionRow(
        id=name, key=key, agent=agent, owner="", epoch=0, title="", model="", parent=parent, created=0, updated=0,
        ended=None, end_reason="", thinking="", summary="", closing=0, cache_key="", erasures=0,
    )  # fmt: skip


ROWS = [
    row("own", "agent:a:main"),
    row("before", "agent:a:main"),
    row("fork", "agent:a:cli:fork", "own"),
    row("deep", "agent:a:cli:deep", "fork"),
    row("helper", "agent:a:main:subagent:1"),
    row("side", "agent:a:cli:side"),
    row("foreign", "agent:b:main", agent="b"),
    row("chat", "agent:a:telegram:direct:7"),
]


@pytest.mark.parametrize(
    ("own", "visibility", "seen"),
    [
        (0, "self", "own before"),
        (0, "tree", "own before fork deep helper"),
        (0, "agent", "own before fork deep helper side chat"),
        (0, "all", "own before fork deep helper side foreign chat"),
        (2, "tree", "fork deep"),
        (7, "all", "chat"),
    ],
)
def test_what_a_conversation_sees_of_others(own: int, visibility: Visibility, seen: str) -> None:
    assert [one.id for one in reachable(ROWS, ROWS[own], visibility)] == seen.split()
