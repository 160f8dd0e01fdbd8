from __future__ import annotations

import pytest

from limpet.channels.gone import Gone
from limpet.channels.names import addressed, means_all


@pytest.mark.parametrize(
    ("text", "rest", "named"),
    [
        ("limpet: hi", "hi", True),
        ("@Limpet, hi", "hi", True),
        ("limpet /stop", "/stop", True),
        ("hi limpet!", "hi limpet!", True),
        ("limpet", "limpet", True),
        ("limpet2: hi", "limpet2: hi", False),
        ("limpet-bot: hi", "limpet-bot: hi", False),
        ("mail me@limpet.org or xlimpet", "mail me@limpet.org or xlimpet", False),
        ("hi all", "hi all", False),
    ],
)
def test_a_name_is_a_word_and_goes_from_the_beginning(text: str, rest: str, named: bool) -> None:
    assert addressed(text, "limpet") == (rest, named)


def test_the_longest_name_goes_and_an_empty_one_means_nobody() -> None:
    assert addressed("limpet:example.org: hi", "limpet", "limpet:example.org") == ("hi", True)
    assert addressed("hello", "") == ("hello", False)


def test_everybody_is_called_by_a_word() -> None:
    assert means_all("dinner, @all!")
    assert not means_all("mail to a@all.org or @allen")


def test_what_was_taken_away_is_known_for_a_while() -> None:
    gone = Gone()
    for number in range(1_001):
        gone.add(str(number))
    assert ("0" in gone, "1" in gone, "1000" in gone) == (False, True, True)
