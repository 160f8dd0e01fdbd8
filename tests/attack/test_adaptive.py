"""What an attacker who knows the rule can and cannot do."""

from __future__ import annotations

import pytest

from tests.attack.adaptive import PLOTS, Plot, gets_through


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.name)
def test_what_gets_through_is_what_the_docs_say(plot: Plot) -> None:
    assert gets_through(plot) is plot.known
