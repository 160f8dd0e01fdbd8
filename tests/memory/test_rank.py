"""Scores on one scale, and what places add."""

from __future__ import annotations

from limpet.memory.dates import Days
from limpet.memory.rank import Asked, Place, fused, placed, scaled


def test_scaling_spans_0_to_1() -> None:
    assert scaled({1: 2.0, 2: 4.0, 3: 3.0}) == {1: 0.0, 2: 1.0, 3: 0.5}
    assert scaled({1: 2.0, 2: 4.0}, low=0.0) == {1: 0.5, 2: 1.0}
    assert scaled({1: 5.0}) == {1: 1.0}
    assert scaled({}) == {}


def test_words_count_more_when_they_cover_the_question() -> None:
    words, vectors = {1: 1.0}, {2: 1.0}
    high, low = fused(words, vectors, covered=1.0), fused(words, vectors, covered=0.0)
    assert high[1] > high[2]
    assert low[1] < low[2]
    assert fused(words, {}, covered=0.0) == words


def test_neighbours_lift_each_other_within_their_group() -> None:
    places = {1: Place("a", 0), 2: Place("a", 1), 3: Place("b", 0), 4: Place("a", 2, long=True)}
    found = placed({1: 1.0, 3: 0.2}, places, Asked())
    assert found[2] == 0.4
    assert found[3] == 0.2
    assert 4 not in found


def test_the_named_person_and_days_and_times_lift() -> None:
    places = {1: Place("a", 0, "Ann", 10), 2: Place("a", 5, "Bob", 20, timed=True), 3: Place("a", 9, "Bob", 99)}
    scores = {1: 1.0, 2: 1.0, 3: 1.0}
    for asked, best in ((Asked(frozenset(["Ann"])), 1), (Asked(when=True), 2), (Asked(days=Days(99, 99)), 3)):
        found = placed(scores, places, asked)
        assert max(found, key=found.__getitem__) == best


def test_two_named_people_lift_nobody() -> None:
    places = {1: Place("a", 0, "Ann"), 2: Place("a", 5, "Bob")}
    assert placed({1: 1.0, 2: 1.0}, places, Asked(frozenset(["Ann", "Bob"]))) == {1: 1.0, 2: 1.0}
