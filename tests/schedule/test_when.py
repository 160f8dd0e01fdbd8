"""What people write for a schedule, and what is wrong with what cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.errors import InputError
from limpet.schedule import slots, when
from limpet.schedule.zones import local, zone_of
from limpet.types.job import ScheduleKind
from tests.schedule.world import DAY, ms

NOW = ms("2026-01-01T00:00Z")


@pytest.mark.parametrize(
    ("said", "zone", "expected"),
    [
        ("in 20 minutes", "UTC", "2026-01-01T00:20Z"),
        ("in an hour and 5 min", "UTC", "2026-01-01T01:05Z"),
        ("in 1h30m", "UTC", "2026-01-01T01:30Z"),
        ("tomorrow 7:30", "Europe/Berlin", "2026-01-02T06:30Z"),
        ("tomorrow at 7:30", "Europe/Berlin", "2026-01-02T06:30Z"),
        ("friday 6pm", "Europe/Berlin", "2026-01-02T17:00Z"),
        ("thu 10:00", "UTC", "2026-01-08T10:00Z"),
        ("at 07:26", "Asia/Ho_Chi_Minh", "2026-01-01T00:26Z"),
        ("06:00", "Asia/Ho_Chi_Minh", "2026-01-01T23:00Z"),
        ("2027-03-23", "Asia/Shanghai", "2027-03-22T16:00Z"),
        ("2026-02-01 10:00", "America/New_York", "2026-02-01T15:00Z"),
        ("2026-02-01T10:00:00Z", "America/New_York", "2026-02-01T10:00Z"),
        ("2026-02-01T10:00+02:00", "America/New_York", "2026-02-01T08:00Z"),
        ("2026-03-08 02:30", "America/New_York", "2026-03-08T07:00Z"),
        ("2026-11-01 01:30", "America/New_York", "2026-11-01T05:30Z"),
    ],
)
def test_moments(said: str, zone: str, expected: str) -> None:
    assert when.schedule("at", said, zone=zone, now=NOW).at == ms(expected)


@pytest.mark.parametrize(
    ("kind", "said", "zone", "why"),
    [
        ("at", "soon", "UTC", "no moment"),
        ("at", "", "UTC", "not said when"),
        ("at", "tomorrow", "UTC", "at what time"),
        ("at", "25:00", "UTC", "no moment"),
        ("at", "2020-01-01", "UTC", "is over"),
        ("at", "7:30", "Mars/Base", "no time zone 'Mars/Base'"),
        ("at", "7:30", "Europe/Lisbo", "Europe/Lisbon"),
        ("at", "7:30", "../../etc/passwd", "no time zone"),
        ("every", "10s", "UTC", "once a minute"),
        ("every", "2 moons", "UTC", "no span"),
        ("every", "99999999d", "UTC", "no span"),
        ("cron", "* * *", "UTC", "3 fields"),
        ("cron", "* * * * * *", "UTC", "6 fields"),
        ("cron", "61 * * * *", "UTC", "minute '61'"),
        ("cron", "0 0 * * 9", "UTC", "day of week '9'"),
        ("cron", "0 0 30 2 *", "UTC", "day of the month '30'"),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_wrong(kind: ScheduleKind, said: str, zone: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        when.schedule(kind, said, zone=zone, now=NOW)
    assert why in caught.value.present()


def test_words_for_cron() -> None:
    made = when.schedule("cron", "@daily", zone="Asia/Tokyo", now=NOW)
    assert slots.after(made, NOW) == ms("2026-01-01T15:00Z")


@given(text=st.text(max_size=40), kind=st.sampled_from(("at", "every", "cron")))
def test_any_text_is_a_schedule_or_refused(text: str, kind: ScheduleKind) -> None:
    try:
        made = when.schedule(kind, text, zone="UTC", now=NOW)
    except InputError:
        return
    due = slots.after(made, NOW)
    assert due is not None
    assert due > NOW


@given(
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    zone=st.sampled_from(
        ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo")
    ),
)
def test_a_daily_job_has_one_slot_on_each_day_of_a_year(hour: int, minute: int, zone: str) -> None:
    made = when.schedule("cron", f"{minute} {hour} * * *", zone=zone, now=NOW)
    found = slots.upto(made, NOW, NOW + 365 * DAY)
    assert len(found) == 365
    assert len({local(at, zone_of(zone)).date() for at in found}) == 365


@given(every=st.integers(1, 5_000), later=st.integers(0, 400 * DAY))
def test_an_anchored_schedule_stays_on_its_grid(every: int, later: int) -> None:
    made = when.schedule("every", f"{every} min", zone="UTC", now=NOW)
    due = slots.after(made, NOW + later)
    assert due is not None
    assert (due - NOW) % (every * 60_000) == 0
    assert 0 < due - NOW - later <= every * 60_000


def test_of_very_many_slots_the_newest_are_given() -> None:
    made = when.schedule("cron", "* * * * *", zone="UTC", now=NOW)
    found = slots.upto(made, NOW, NOW + 30 * DAY)
    assert len(found) == slots.MOST
    assert found[-1] == NOW + 30 * DAY
