"""How fast a conversation goes is read from its key and its log, and is the same however the log is taken in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from limpet.session.log import Log
from limpet.session.rhythm import REMEMBERED, pause_of, rhythm_of
from limpet.types.entry import Entry
from limpet.types.message import Rhythm
from tests.session.logs import Builder

MAIN = "agent:main:main"
MINUTE = 60_000


def talk(*minutes: int) -> list[Entry]:
    """A message and its answer, and another two after each of so many minutes."""
    log, now = Builder(), MINUTE
    for pause in (0, *minutes):
        now += pause * MINUTE
        log.user()
        log.assistant("answer")
        log.entries[-2:] = [structs.replace(entry, at=now) for entry in log.entries[-2:]]
    return log.entries


@pytest.mark.parametrize(
    ("minutes", "rhythm"),
    [
        ((), "slow"),
        ((120, 120), "slow"),
        ((120, 120, 120), "quick"),
        ((120, 30, 120, 30, 120), "slow"),
        ((120, 120, 30, 120), "quick"),
        ((1, 2, 3, 4, 120, 1), "slow"),
        ((120,) * 8 + (20,) * 4, "slow"),
    ],
)
def test_an_hour_is_asked_for_where_people_come_back_within_it(minutes: tuple[int, ...], rhythm: Rhythm) -> None:
    assert rhythm_of(MAIN, Log(talk(*minutes)).pauses) == rhythm


@pytest.mark.parametrize(
    ("key", "rhythm"),
    [
        ("agent:main:telegram:direct:7", "slow"),
        ("cron:morning", "quick"),
        ("hook:mail", "quick"),
        ("agent:main:main:subagent:3", "quick"),
    ],
)
def test_nobody_talks_to_jobs_and_helpers(key: str, rhythm: Rhythm) -> None:
    assert rhythm_of(key, ["hour"] * 5) == rhythm


@given(st.lists(st.integers(0, 200), max_size=20), st.data())
def test_pauses_are_the_same_however_the_log_is_taken_in(minutes: list[int], data: st.DataObject) -> None:
    entries = talk(*minutes)
    log = Log(entries[: data.draw(st.integers(0, len(entries)))])
    log.extend(entries[len(log.entries) :])
    found = [pause for minute in minutes if (pause := pause_of(minute * MINUTE))]
    assert list(log.pauses) == found[-REMEMBERED:]
