"""Budgets: money that may be spent at the most, held in the transaction that reserves it, so that nothing gets past."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, convert

from limpet.errors import BudgetError
from limpet.store.sql import Connection, Value

WARN_AT = 0.8
"""Share of a budget at which the owner is warned, once a day and process."""
_OF_AGENT = (
    "session IN (SELECT id FROM sessions WHERE agent = (SELECT agent FROM sessions WHERE id = ?2)"
    " UNION ALL SELECT session FROM removals WHERE agent = (SELECT agent FROM sessions WHERE id = ?2))"
)


class Budgets(Struct, frozen=True):
    """Micro-dollars, 0 = no limit: for one session in all, for everything in one day, for one agent in one day."""

    session: int = 0
    day: int = 0
    agent_day: int = 0


NO_BUDGETS = Budgets()


class Gauge:
    """Holds requests against the budgets."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._warned: set[tuple[str, int]] = set()

    def check(self, connection: Connection, session: str, *, at_most: int, today: int) -> list[str]:
        """Warnings on budgets that are nearly used up, for a request that may cost `at_most` micro-dollars.

        0 = nobody knows; it passes until a budget is used up. `today` is when the owner's day began (UTC ms). Raises
        `BudgetError` when a budget would not hold.
        """
        budgets = self._budgets
        warnings: list[str] = []
        if budgets.session:
            spent = _committed(connection, "session = ?", (session,))
            warnings += self._hold("this conversation", budgets.session, spent, at_most=at_most, today=today)
        if budgets.day:
            spent = _committed(connection, "at >= ?", (today,))
            warnings += self._hold("the day", budgets.day, spent, at_most=at_most, today=today)
        if budgets.agent_day:
            spent = _committed(connection, f"at >= ?1 AND {_OF_AGENT}", (today, session))
            warnings += self._hold("this agent's day", budgets.agent_day, spent, at_most=at_most, today=today)
        return warnings

    def _hold(self, what: str, limit: int, spent: int, *, at_most: int, today: int) -> list[str]:
        cost = f"may cost up to {_dollars(at_most)}" if at_most else "costs nobody knows what"
        if spent + max(at_most, 1) > limit:
            raise BudgetError(
                f"The budget of {what} is {_dollars(limit)}: {_dollars(spent)} are spent or reserved, and this request"
                f" {cost}.",
                hint="Raise it with `limpet config set budgets.…` (docs/config.md), or go on when it is free again.",
            )
        if spent + at_most < limit * WARN_AT or (what, today) in self._warned:
            return []
        self._warned.add((what, today))
        return [f"{_dollars(spent)} of the budget of {what} ({_dollars(limit)}) are spent, and this request {cost}."]


def _committed(connection: Connection, condition: str, values: Sequence[Value]) -> int:
    """Micro-dollars of the requests that meet `condition`; open and killed ones count with what they reserved."""
    row = connection.execute(
        "SELECT COALESCE(SUM(CASE WHEN state IN ('open', 'orphaned') THEN reserved ELSE COALESCE(cost, 0) END), 0)"
        f" FROM usage WHERE {condition}",
        values,
    ).fetchone()
    return convert(row, tuple[int])[0]


def _dollars(amount: int) -> str:
    """Cents, or hundredths of them where cents would say nothing."""
    return f"${amount / 1e6:.{2 if amount >= 1_000_000 else 4}f}"
