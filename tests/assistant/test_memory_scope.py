"""Whose memory a conversation has."""

from __future__ import annotations

import pytest

from limpet.assistant.memory_scope import scope_of, scope_of_file
from limpet.memory.scope import OWNERS, MemoryScope
from limpet.session import keys
from limpet.types.envelope import Address

CHAT = Address(channel="telegram", chat="-100")


@pytest.mark.parametrize(
    "key",
    [
        keys.main("main"),
        keys.cli("main", "work"),
        keys.cron("report"),
        "agent:main:web:1",
        f"{keys.main('main')}:subagent:x",
    ],
)
def test_the_owners_conversations_have_his(key: str) -> None:
    assert scope_of(key, {}) == OWNERS


def test_people_and_groups_have_their_own() -> None:
    one = [keys.direct("main", CHAT, "42"), keys.direct("main", CHAT, "43"), keys.group("main", CHAT)]
    one += [keys.direct("main", Address(channel="discord"), "42"), keys.direct("main", CHAT, "ann", scope="peer")]
    one += [keys.direct("main", CHAT, "Ann"), keys.direct("main", CHAT, "ANN"), "agent:main:api:token:s1", "odd"]
    names = [scope_of(key, {}).name for key in one]
    assert len(set(map(str.casefold, names))) == len(one)
    assert all(name.split("/")[0] in ("people", "groups") and name.count("/") == 1 for name in names)


def test_threads_and_helpers_have_that_of_their_chat() -> None:
    group = scope_of(keys.group("main", CHAT), {})
    assert scope_of(keys.group("main", Address("telegram", chat="-100", thread="7")), {}) == group
    assert scope_of(keys.subagent(keys.group("main", CHAT), "x"), {}) == group


def test_what_is_bound_together_shares() -> None:
    bound = {"owner": ["telegram:direct:42"], "family": ["telegram:direct:43", "telegram:group:-100"]}
    assert scope_of(keys.direct("main", CHAT, "42"), bound) == OWNERS
    shared = scope_of(keys.direct("main", CHAT, "43"), bound)
    assert shared == scope_of(keys.group("main", CHAT), bound) == MemoryScope("groups/family")


def test_ids_cannot_lead_out() -> None:
    name = scope_of("agent:main:telegram:direct:../../x", {}).name
    assert ".." not in name
    assert name.count("/") == 1


def test_a_file_tells_whose_it_is() -> None:
    assert scope_of_file("memory/people/a/pending/2026-01-01.md") == MemoryScope("people/a")
    assert scope_of_file("memory/2026-01-01.md") == OWNERS


@pytest.mark.parametrize("path", ["MEMORY.md", "memory.MD", "USER.md", "memory/people/b/x.md", "memory", "memory/x.md"])
def test_others_see_neither_the_owners_nor_each_others(path: str) -> None:
    veil = MemoryScope("people/a").veil
    assert veil.hides(path)
    assert not veil.hides("memory/people/a/MEMORY.md")
    assert not veil.hides("notes/x.md")
    assert OWNERS.veil.hides("memory/people/a/MEMORY.md")
    assert not OWNERS.veil.hides("memory/2026-01-01.md")
