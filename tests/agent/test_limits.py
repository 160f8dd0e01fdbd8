from __future__ import annotations

import pytest

from limpet.agent.limits import Budget, Limits
from limpet.testing.clock import FakeClock
from limpet.types.usage import Usage


@pytest.mark.parametrize(("local", "words"), [(False, "1,000 tokens"), (True, "")])
def test_what_has_no_price_counts_in_tokens_also_beside_what_has_one(local: bool, words: str) -> None:
    budget = Budget(Limits(tokens=1_000), FakeClock(), local=local)
    budget.spend(Usage(input=10, output=10, cost=5))
    budget.count(Usage(input=900, output=100))
    assert words in budget.exceeded()
    assert bool(budget.exceeded()) == bool(words)


def test_what_has_a_price_is_held_by_money_alone() -> None:
    budget = Budget(Limits(tokens=1_000), FakeClock())
    budget.count(Usage(input=5_000, output=100, cost=5))
    assert budget.exceeded() == ""
