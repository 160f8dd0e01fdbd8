"""What `python -m bench memory` measures of our own: goals that can be counted hold, costs are measured."""

from __future__ import annotations

from bench import memory_cjk, memory_speed


def test_nine_of_ten_chinese_japanese_and_korean_questions_find_their_note_first() -> None:
    given = memory_cjk.asked()
    assert len(given.notes) >= 60
    assert len(given.asked) >= 40
    wrong, absent = memory_cjk.missed()
    assert len(wrong) <= 0.1 * len(given.asked), wrong
    assert absent == []


def test_each_size_is_measured_with_a_search_a_look_and_the_build() -> None:
    cost = memory_speed.cost_of(40)
    assert len(cost.searches) == 4
    assert len(cost.looks) == 10
    assert min(cost.searches) > 0
    assert min(cost.build, cost.file, cost.peak) > 0


def test_only_the_sizes_with_a_goal_have_one() -> None:
    cost = memory_speed.Cost(1.0, (1.0, 2.0), (1.0,), 1, 2, 3)
    found = {size: [one.what for one in memory_speed.figures_of(size, cost) if one.goal] for size in (1_000, 10_000)}
    assert found == {1_000: [], 10_000: ["search, p50", "unchanged"]}
