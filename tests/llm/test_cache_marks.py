"""Where and for how long the prefix of a request is kept."""

from __future__ import annotations

import pytest

from limpet.llm.cache_marks import HOUR, NEAR, SHORT, lifetime, marked
from limpet.session import keys
from limpet.types.message import Rhythm
from limpet.types.profile import Profile


@pytest.mark.parametrize(
    ("ttl", "rhythm", "seconds"),
    [(HOUR, "slow", HOUR), (HOUR, "quick", SHORT), (HOUR, "once", 0), (SHORT, "slow", SHORT), (0, "slow", 0)],
)
def test_marks_ask_for_what_the_rhythm_needs_and_the_service_has(ttl: int, rhythm: Rhythm, seconds: int) -> None:
    assert lifetime(Profile(provider="p", wire="anthropic", model="m", cache_ttl=ttl), rhythm) == seconds


@pytest.mark.parametrize(
    ("key", "rhythm"),
    [
        ("agent:main:main", "slow"),
        ("agent:main:telegram:direct:7", "slow"),
        ("cron:morning", "quick"),
        ("hook:mail", "quick"),
        ("agent:main:main:subagent:3", "quick"),
    ],
)
def test_nobody_talks_to_jobs_and_helpers(key: str, rhythm: Rhythm) -> None:
    assert keys.rhythm_of(key) == rhythm


def test_the_marks_of_one_message_are_two_at_the_most() -> None:
    assert [marked(blocks) for blocks in (1, NEAR, NEAR + 1)] == [(0,), (NEAR - 1,), (0, NEAR)]
