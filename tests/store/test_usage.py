"""Rows of requests that never came to their end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.store import usage
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.spending import Spent, spent
from limpet.store.usage import UsageMeter, close_orphans
from limpet.testing.clock import FakeClock
from limpet.testing.wires import ask
from limpet.types.profile import Profile
from limpet.types.usage import NO_USAGE, Usage

PROFILE = Profile(provider="p", wire="openai_chat", model="m")
EXPECTED = Usage(input=500, cost=1_500)


def after(folder: Path, *, settled: tuple[Usage, bool] | None) -> Spent:
    """What one request has used that was settled so, or whose process was killed."""

    async def main() -> Spent:
        owner = Owner(str(folder / "run"))
        store = Store.open(str(folder / "limpet.db"), process=owner.name)
        meter = UsageMeter(store, owner, FakeClock())
        name, _ = await meter.reserve(ask(), PROFILE, at_most=9_000, expected=EXPECTED)
        if settled is None:
            await store.write(lambda connection: close_orphans(connection, owner.name))
        else:
            await meter.settle(name, settled[0], state="failed", estimated=settled[1])
        (row,) = store.read(lambda connection: spent(connection, "model", since=0))
        assert store.read(lambda connection: usage.of_session(connection, "s1")) == row.usage
        await store.close()
        owner.close()
        return row

    return asyncio.run(main())


def test_a_killed_request_keeps_what_was_expected_of_it(tmp_path: Path) -> None:
    row = after(tmp_path, settled=None)
    assert (row.usage, row.lost, row.estimated) == (EXPECTED, 1, 1)


def test_a_cut_request_costs_what_it_was_settled_with(tmp_path: Path) -> None:
    used = Usage(input=480, output=20, cost=1_700)
    row = after(tmp_path, settled=(used, True))
    assert (row.usage, row.lost, row.estimated) == (used, 0, 1)


def test_a_refused_request_costs_nothing(tmp_path: Path) -> None:
    row = after(tmp_path, settled=(NO_USAGE, False))
    assert (row.usage, row.lost, row.estimated) == (NO_USAGE, 0, 0)
