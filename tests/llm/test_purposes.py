"""What a purpose leaves open is as for the chat, and what that leaves open the provider's own."""

from __future__ import annotations

from limpet.config.schema import ChatPurpose, Purpose, PurposeSettings
from limpet.llm.purposes import purpose_of, sampling_for
from limpet.types.message import Sampling
from limpet.types.profile import Profile

CLOUD = Profile(provider="openai", wire="openai_chat", model="m")
LOCAL = Profile(provider="ollama", wire="openai_chat", model="m", local=True)


def test_nothing_set_is_the_providers_own() -> None:
    found = purpose_of(PurposeSettings(), "summary")
    assert (found.model, found.sampling, found.tool_choice) == ("", Sampling(), "auto")


def test_a_purpose_takes_from_the_chat_what_it_leaves_open() -> None:
    settings = PurposeSettings(
        chat=ChatPurpose(temperature=0.7, max_tokens=900, thinking="high"),
        summary=Purpose(model="openai/small", temperature=0.0, thinking="off"),
    )
    found = purpose_of(settings, "summary")
    assert found.model == "openai/small"
    assert found.sampling == Sampling(temperature=0.0, max_tokens=900, thinking="off")
    assert purpose_of(settings, "cron").sampling == Sampling(temperature=0.7, max_tokens=900, thinking="high")


def test_local_models_with_tools_are_asked_coolly_unless_something_is_set() -> None:
    chat = purpose_of(PurposeSettings(), "chat")
    assert sampling_for(chat, LOCAL).temperature == 0.3
    assert sampling_for(chat, LOCAL, tools=False).temperature is None
    assert sampling_for(chat, CLOUD).temperature is None
    warm = purpose_of(PurposeSettings(chat=ChatPurpose(temperature=1.0)), "chat")
    assert sampling_for(warm, LOCAL).temperature == 1.0


def test_the_session_says_how_much_to_think() -> None:
    chat = purpose_of(PurposeSettings(chat=ChatPurpose(thinking="low")), "chat")
    assert sampling_for(chat, CLOUD, thinking="high").thinking == "high"
    assert sampling_for(chat, CLOUD).thinking == "low"
