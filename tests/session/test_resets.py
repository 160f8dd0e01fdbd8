"""Conversations begin anew after a pause or once a day, also on the days on which the clock is changed."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.session.keys import kind_of
from limpet.session.resets import Reset, boundary, due

LISBON = ZoneInfo("Europe/Lisbon")
HOUR = 3_600_000


def at(text: str, zone: ZoneInfo = LISBON) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def test_off_by_default() -> None:
    assert due(Reset(), 0, at("2026-12-01T10:00"), zone=LISBON) == ""


def test_after_a_pause() -> None:
    rule = Reset(idle=60)
    assert due(rule, 0, 59 * 60_000, zone=LISBON) == ""
    assert due(rule, 0, 60 * 60_000, zone=LISBON) == "idle"


def test_once_a_day_at_its_hour() -> None:
    rule = Reset(daily=4)
    assert due(rule, at("2026-12-01T03:50"), at("2026-12-01T03:59"), zone=LISBON) == ""
    assert due(rule, at("2026-12-01T03:50"), at("2026-12-01T04:00"), zone=LISBON) == "daily"
    assert due(rule, at("2026-12-01T04:00"), at("2026-12-02T03:59"), zone=LISBON) == ""
    assert due(rule, at("2026-12-01T04:00"), at("2026-12-03T10:00"), zone=LISBON) == "daily"


@given(st.integers(0, 23), st.integers(0, 400 * 24 * 4), st.sampled_from(["Europe/Lisbon", "America/New_York", "UTC"]))
def test_each_day_has_one_boundary_whatever_the_clock_does(hour: int, quarters: int, name: str) -> None:
    zone = ZoneInfo(name)
    now = at("2026-01-01T00:00", zone) + quarters * HOUR // 4
    found = boundary(now, hour, zone=zone)
    assert now - 26 * HOUR < found <= now
    assert boundary(found, hour, zone=zone) == found
    local = datetime.fromtimestamp(found / 1000, zone)
    assert local.hour == hour or local.astimezone(UTC).hour != local.hour


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", "main"),
        ("agent:main:cli:work", "cli"),
        ("agent:main:telegram:direct:42", "direct"),
        ("agent:main:matrix:me:direct:@ann:example.org", "direct"),
        ("agent:main:direct:ann", "direct"),
        ("agent:main:telegram:group:-100", "group"),
        ("agent:main:telegram:group:-100:thread:7", "thread"),
        ("cron:backup", "cron"),
        ("hook:door", "hook"),
        ("agent:main:main:subagent:c1", "subagent"),
        ("agent:main:api:t:s", "api"),
    ],
)
def test_kinds_of_keys(key: str, kind: str) -> None:
    assert kind_of(key) == kind
