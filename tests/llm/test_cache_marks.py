"""Where and for how long the prefix of a request is kept."""

from __future__ import annotations

import pytest

from limpet.llm.cache_marks import HOUR, NEAR, SHORT, kept, lifetime, marked
from limpet.types.message import Rhythm
from limpet.types.profile import Profile


@pytest.mark.parametrize(
    ("ttl", "rhythm", "seconds"),
    [(HOUR, "slow", HOUR), (HOUR, "quick", SHORT), (HOUR, "once", 0), (SHORT, "slow", SHORT), (0, "slow", 0)],
)
def test_marks_ask_for_what_the_rhythm_needs_and_the_service_has(ttl: int, rhythm: Rhythm, seconds: int) -> None:
    assert lifetime(Profile(provider="p", wire="anthropic", model="m", cache_ttl=ttl), rhythm) == seconds


def test_services_without_marks_keep_what_they_keep() -> None:
    deepseek = Profile(provider="deepseek", wire="openai_chat", model="m", cache_ttl=HOUR)
    assert kept(deepseek, "quick") == HOUR
    assert kept(Profile(provider="p", wire="bedrock", model="m", cache_ttl=HOUR), "quick") == SHORT


def test_the_marks_of_one_message_are_two_at_the_most() -> None:
    assert [marked(blocks) for blocks in (1, NEAR, NEAR + 1)] == [(0,), (NEAR - 1,), (0, NEAR)]
