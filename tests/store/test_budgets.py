"""Budgets: held before the money is spent, over restarts, with what was killed counted as spent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from limpet.errors import BudgetError
from limpet.store import sessions
from limpet.store.budgets import Budgets
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.usage import UsageMeter, close_orphans
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import SCRIPTED
from limpet.types.message import Request
from limpet.types.profile import Price
from limpet.types.usage import Usage

DAY = 86_400


class Till:
    """A meter on a real database. `ask` reserves, and settles unless the request is killed."""

    def __init__(self, folder: Path, budgets: Budgets, clock: FakeClock) -> None:
        self.owner = Owner(str(folder / "run"))
        self.store = Store.open(str(folder / "a.db"), process=self.owner.name)
        self.meter = UsageMeter(self.store, self.owner, clock, budgets=budgets)

    async def ask(self, at_most: int, *, cost: int | None = None, session: str = "s1") -> str:
        request = Request(session=session, system="", tools=(), messages=())
        name, warning = await self.meter.reserve(request, SCRIPTED, at_most=at_most)
        if cost is not None:
            await self.meter.settle(name, Usage(cost=cost), state="done")
        return warning

    async def close(self) -> None:
        await self.store.close()
        self.owner.close()


def test_a_request_that_might_break_the_budget_is_not_made(tmp_path: Path) -> None:
    async def main() -> None:
        till = Till(tmp_path, Budgets(day=100), FakeClock())
        assert await till.ask(60, cost=50) == ""
        with pytest.raises(BudgetError, match="budget of the day"):
            await till.ask(60)
        assert "of the budget of the day" in await till.ask(50, cost=10)
        await till.close()

    asyncio.run(main())


def test_a_request_whose_price_nobody_knows_is_not_made_when_the_budget_is_used_up(tmp_path: Path) -> None:
    async def main() -> None:
        till = Till(tmp_path, Budgets(day=100), FakeClock())
        await till.ask(0, cost=40)
        await till.ask(60, cost=60)
        with pytest.raises(BudgetError, match="nobody knows"):
            await till.ask(0)
        request = Request(session="s1", system="", tools=(), messages=())
        for free in (structs.replace(SCRIPTED, local=True), structs.replace(SCRIPTED, price=Price(input=0, output=0))):
            await till.meter.reserve(request, free, at_most=0)
        await till.close()

    asyncio.run(main())


def test_two_at_once_cannot_both_take_the_last_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        till = Till(tmp_path, Budgets(day=100), FakeClock())
        results = await asyncio.gather(till.ask(60), till.ask(60), return_exceptions=True)
        assert sum(isinstance(result, BudgetError) for result in results) == 1
        await till.close()

    asyncio.run(main())


def test_a_killed_request_counts_with_what_it_reserved_also_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FakeClock()
        till = Till(tmp_path, Budgets(day=100), clock)
        await till.ask(60)
        process = till.owner.name
        await till.close()
        till = Till(tmp_path, Budgets(day=100), clock)
        await till.store.write(lambda connection: close_orphans(connection, process))
        with pytest.raises(BudgetError):
            await till.ask(60)
        await till.close()

    asyncio.run(main())


def test_the_next_day_begins_anew_and_a_session_does_not(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FakeClock()
        till = Till(tmp_path, Budgets(day=100, session=150), clock)
        await till.ask(90, cost=90)
        clock.advance(DAY)
        with pytest.raises(BudgetError, match="this conversation"):
            await till.ask(90)
        await till.ask(90, cost=90, session="s2")
        await till.close()

    asyncio.run(main())


def test_agents_have_budgets_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        till = Till(tmp_path, Budgets(agent_day=100), FakeClock())
        ids = [
            (await till.store.write(lambda c, a=agent, n=n: sessions.open_live(c, f"{a}{n}", agent=a, now=0))).id
            for n, agent in enumerate(("one", "one", "two"))
        ]
        await till.ask(90, cost=90, session=ids[0])
        with pytest.raises(BudgetError, match="this agent"):
            await till.ask(90, session=ids[1])
        await till.ask(90, cost=90, session=ids[2])
        await till.close()

    asyncio.run(main())


def test_the_warning_at_eighty_percent_comes_once(tmp_path: Path) -> None:
    async def main() -> None:
        till = Till(tmp_path, Budgets(day=1000), FakeClock())
        warnings = [await till.ask(100, cost=100) for _ in range(10)]
        assert [bool(warning) for warning in warnings] == [False] * 7 + [True, False, False]
        await till.close()

    asyncio.run(main())
