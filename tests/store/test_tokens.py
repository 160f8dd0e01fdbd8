"""Tokens of the API: found by what is shown, and by nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.store import api_threads, tokens
from limpet.store.driver import Store


def test_only_what_was_given_is_taken(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "limpet.db"), process="p")
        shown = await store.write(lambda one: tokens.create(one, "phone", scopes=("chat",), expires=100, now=1))
        found = store.read(lambda one: tokens.find(one, shown, now=99))
        assert found is not None
        assert (found.name, found.scopes) == ("phone", ("chat",))
        prefix, id, secret = shown.split("_", 2)
        for wrong in ("", shown[:-1], shown + "x", f"{prefix}_{id}_", f"x_{id}_{secret}", f"{prefix}_00_{secret}", "ü"):
            assert store.read(lambda one, wrong=wrong: tokens.find(one, wrong, now=99)) is None
        assert store.read(lambda one: tokens.find(one, shown, now=100)) is None, "expired"
        assert await store.write(lambda one: tokens.revoke(one, "phone", now=2))
        assert store.read(lambda one: tokens.find(one, shown, now=50)) is None
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(("now", "session"), [(9, "s1"), (10, "")])
def test_a_thread_leads_somewhere_until_it_is_over(tmp_path: Path, now: int, session: str) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "limpet.db"), process="p")
        await store.write(lambda one: api_threads.note(one, "phone", "n", session="s1", lasts=10, now=0))
        found = store.read(lambda one: api_threads.find(one, "phone", "n", now=now))
        assert (found.session if found else "") == session
        assert store.read(lambda one: api_threads.find(one, "other", "n", now=0)) is None
        await store.close()

    asyncio.run(main())
