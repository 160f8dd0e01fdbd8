"""Days that questions name. Today is Wednesday, 15 May 2024."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.memory.dates import EPOCH, Days, asks_when, named_days, tells_when

TODAY = date(2024, 5, 15)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what was on 2024-03-02?", "2024-03-02", "2024-03-02"),
        ("what happened in 2024-02", "2024-02-01", "2024-02-29"),
        ("on 7 May 2023 we met", "2023-05-07", "2023-05-07"),
        ("the 3rd of June, 2022", "2022-06-03", "2022-06-03"),
        ("on March 9, 2021", "2021-03-09", "2021-03-09"),
        ("in August 2023", "2023-08-01", "2023-08-31"),
        ("what did we do in 2022?", "2022-01-01", "2022-12-31"),
        ("yesterday", "2024-05-14", "2024-05-14"),
        ("last Tuesday", "2024-05-14", "2024-05-14"),
        ("last Wednesday", "2024-05-08", "2024-05-08"),
        ("last week", "2024-05-06", "2024-05-12"),
        ("last month", "2024-04-01", "2024-04-30"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("three days ago", "2024-05-12", "2024-05-12"),
        ("2 weeks ago", "2024-04-28", "2024-05-04"),
        ("昨天说了什么", "2024-05-14", "2024-05-14"),
        ("上周二的会议", "2024-05-07", "2024-05-07"),
        ("上个月", "2024-04-01", "2024-04-30"),
        ("2023年5月7日", "2023-05-07", "2023-05-07"),
        ("去年三月", "2023-03-01", "2023-03-31"),
        ("gestern", "2024-05-14", "2024-05-14"),
        ("letzte Woche", "2024-05-06", "2024-05-12"),
    ],
)
def test_names(question: str, first: str, last: str) -> None:
    found = named_days(question, TODAY)
    assert found is not None
    assert not found.yearly
    assert [str(date.fromordinal(day + EPOCH)) for day in (found.first, found.last)] == [first, last]


@pytest.mark.parametrize("question", ["on 7 May", "on May 7th", "in May", "五月七日", "5月的旅行"])
def test_without_a_year_it_is_every_year(question: str) -> None:
    found = named_days(question, TODAY)
    assert found is not None
    assert found.yearly
    day = date(2021, 5, 7).toordinal() - EPOCH
    assert found.nearness(day, after=14) == 1
    assert found.nearness(day + 120, after=14) == 0


@pytest.mark.parametrize("question", ["may I ask you?", "the march was long", "version 1.2.3", "call me at 10"])
def test_names_none(question: str) -> None:
    assert named_days(question, TODAY) is None


def test_nearness_fades_after_the_days() -> None:
    days = Days(100, 101)
    assert [days.nearness(day, after=10) for day in (98, 99, 101, 106, 111)] == [0, 1, 1, 0.5, 0]


def test_which_questions_ask_for_a_time_and_which_texts_tell_one() -> None:
    assert asks_when("When did she move?")
    assert asks_when("她什么时候搬家的")
    assert not asks_when("Where does she live?")
    assert tells_when("we moved last Friday")
    assert not tells_when("we like it here")


@given(st.text(max_size=60), st.dates(min_value=date(1971, 1, 1), max_value=date(2100, 1, 1)))
def test_no_question_breaks_it(text: str, today: date) -> None:
    found = named_days(text, today)
    assert found is None or found.first <= found.last
