from __future__ import annotations

import pytest

from limpet.llm.names import address_of, key_of
from limpet.llm.profiles import owner_of, profile_of, service_at, services, with_window


@pytest.mark.parametrize("provider", list(services()))
def test_every_provider_gives_a_profile_of_its_default(provider: str):
    service = services()[provider]
    profile = profile_of(provider, service.default or "some-model")
    assert profile.reference == f"{provider}/{service.default or 'some-model'}"
    assert profile.base_url == service.base_url


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:8000/v1", "vllm"),
        ("http://192.168.1.2:11434/v1", "custom"),
        ("https://evil-api.openai.com.test/v1", "custom"),
    ],
)
def test_hosts_and_ports_name_providers(url: str, provider: str):
    assert service_at(url) == provider


def test_models_know_their_parameters():
    mini = profile_of("openai", "gpt-5-mini")
    assert (mini.token_parameter, mini.temperature, mini.thinking) == ("max_completion_tokens", False, "effort")
    assert mini.price is not None
    assert mini.price.output == 2_000_000
    sonnet = profile_of("anthropic", "claude-sonnet-4-5")
    assert (sonnet.wire, sonnet.window, sonnet.thinking) == ("anthropic", 200_000, "budget")
    assert profile_of("deepseek", "deepseek-v4-flash").reasoning_echo == "always"
    assert profile_of("ollama", "llama3.2").text_calls == ("json", "hermes", "mistral")
    assert profile_of("custom", "MiniMax-M2", base_url="https://x.test/v1").text_calls == ("minimax", "invoke")


def test_what_a_service_takes_of_reasoning_beside_tools():
    assert profile_of("openai", "gpt-5.6-luna").effort_with_tools == "none"
    assert profile_of("openai", "gpt-5.4-mini").effort_with_tools == "absent"
    assert profile_of("openai", "gpt-5-mini").effort_with_tools == "free"
    assert profile_of("openrouter", "openai/gpt-5.6-luna").effort_with_tools == "free"
    assert profile_of("anthropic", "claude-sonnet-5-5").thinking == "between_tools"
    assert profile_of("anthropic", "claude-sonnet-5").thinking == "adaptive"


def test_a_model_through_a_router_keeps_the_routers_ways():
    profile = profile_of("openrouter", "anthropic/claude-sonnet-4.5")
    assert (profile.wire, profile.thinking, profile.window) == ("openai_chat", "openrouter", 200_000)


def test_a_server_on_this_machine_is_local():
    profile = profile_of("openai", "m", base_url="http://127.0.0.1:5000/v1")
    assert profile.local
    assert not profile.cache_key
    assert not profile_of("openai", "m").local


def test_the_smallest_known_window_counts():
    profile = profile_of("openai", "gpt-4o", window=32_000)
    assert profile.window == 32_000
    assert with_window(profile, 0, 4_096).window == 4_096
    assert with_window(profile_of("custom", "m"), 0).window == 0
    assert profile_of("openai", "gpt-4o", window=900_000).window == 128_000


@pytest.mark.parametrize(("model", "owner"), [("gpt-4o", "openai"), ("Claude-opus-5", "anthropic"), ("llama3", "")])
def test_bare_names_have_owners(model: str, owner: str):
    assert owner_of(model) == owner


def test_services_with_wires_and_addresses_of_their_own():
    gemini = profile_of("gemini", "gemini-3.1-pro")
    assert (gemini.wire, gemini.thinking, bool(gemini.call_signature)) == ("gemini", "effort_only", True)
    assert profile_of("bedrock", "us.anthropic.claude-x").wire == "bedrock"
    azure = profile_of("azure", "my-deployment", base_url="https://me.openai.azure.com/")
    url = "https://me.openai.azure.com/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview"
    assert address_of(azure, "/chat/completions") == url
    assert key_of(azure, "k") == {"api-key": "k"}


def test_what_models_want_of_their_history_wherever_they_run():
    assert profile_of("openrouter", "mistralai/x").id_length == 9
    kimi = profile_of("openrouter", "moonshotai/kimi-k3")
    assert (kimi.reasoning_pad, kimi.schema) == (" ", "moonshot")
