from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, structs

from limpet.errors import ParameterError
from limpet.llm.learned import OURS, lesson_of, taught, without
from limpet.types.profile import Profile

PROFILE = Profile(provider="p", wire="openai_chat", model="m")


def lesson(name: str, body: object, *, scope: str = "field", profile: Profile = PROFILE) -> str:
    return lesson_of(ParameterError("no", name=name, scope=scope), [json.encode(body)], profile)


def test_fields_go_wherever_settings_stand_and_nowhere_else():
    fields = {"temperature": 1, "generationConfig": {"temperature": 1, "topP": 2}, "tools": [{"temperature": 1}]}
    assert without(fields, ["temperature"]) == {"generationConfig": {"topP": 2}, "tools": [{"temperature": 1}]}
    assert without({"inferenceConfig": {"maxTokens": 1}}, ["max_tokens"]) == {}


def test_one_value_may_be_refused_alone():
    refused = ['reasoning_effort="none"']
    assert without({"reasoning_effort": "none"}, refused) == {}
    assert without({"reasoning_effort": "high"}, refused) == {"reasoning_effort": "high"}


@given(
    st.dictionaries(st.sampled_from([*OURS, "model", "messages", "tools"]), st.integers()),
    st.lists(st.sampled_from(OURS)),
)
def test_only_what_is_refused_goes(fields: dict[str, object], refused: list[str]):
    kept = without(fields, refused)
    assert kept.items() <= fields.items()
    assert set(fields) - set(kept) == set(fields) & set(refused)


def test_the_other_token_parameter_takes_over_until_it_is_refused_too():
    once = taught(PROFILE, refused=["max_tokens"])
    assert once.token_parameter == "max_completion_tokens"
    both = taught(once, refused=["max_tokens", "max_completion_tokens"])
    assert without({both.token_parameter: 5}, both.refused) == {}


def test_a_window_only_becomes_smaller_and_never_absurd():
    known = structs.replace(PROFILE, window=8_000)
    assert [taught(known, refused=(), window=n).window for n in (4_096, 9_000, 12, 0)] == [4_096, 8_000, 8_000, 8_000]
    assert taught(PROFILE, refused=(), window=4_096).window == 4_096


@pytest.mark.parametrize("name", ["messages", "tools", "model", "system", "nobody"])
def test_what_is_asked_is_never_left_out(name: str):
    assert lesson(name, {name: 1}) == ""


def test_only_what_was_sent_can_be_learned():
    assert lesson("temperature", {"messages": ["temperature"]}) == ""
    assert lesson("temperature", {"inferenceConfig": {"temperature": 0.5}}) == "temperature"
    assert lesson("max_tokens", {"max_tokens": 1}, profile=structs.replace(PROFILE, wire="anthropic")) == ""


def test_the_value_is_learned_where_only_that_is_refused():
    assert lesson("effort", {"reasoning": {"effort": "none"}}, scope="value") == 'effort="none"'


def test_services_name_thinking_as_they_like():
    assert lesson("reasoning_effort", {"thinking": {"type": "enabled"}}) == "thinking"


def test_what_stands_in_messages_is_a_matter_of_the_profile():
    marked = structs.replace(PROFILE, cache_ttl=300, reasoning_echo="own")
    assert lesson("cache_control", {}, profile=marked) == "cache_control"
    assert lesson("cache_control", {}) == lesson("reasoning_content", {}) == ""
    now = taught(marked, refused=["cache_control", "reasoning_content"])
    assert (now.cache_ttl, now.reasoning_echo) == (0, "none")
