from __future__ import annotations

import re

import msgspec
import pytest

from limpet.llm.names import address_of, key_of
from limpet.llm.profiles import assumed, data, owner_of, profile_of, service_at, services, with_window
from limpet.types.profile import Profile


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


@pytest.mark.parametrize("provider", [name for name, service in services().items() if service.hosts])
def test_every_provider_is_known_by_its_host(provider: str):
    service = services()[provider]
    assert service_at(service.base_url or f"https://me.{service.hosts[0]}/x") == provider
    for host in service.hosts:
        there = service_at(f"https://{host}")
        assert services()[there].hosts == service.hosts
        assert service_at(f"https://evil-{host}.test/v1") == "custom"


@pytest.mark.parametrize("provider", [name for name, service in services().items() if service.ports])
def test_every_local_server_is_known_by_its_port(provider: str):
    service = services()[provider]
    assert service_at(f"http://localhost:{service.ports[0]}/v1") == provider
    assert profile_of(provider, "m").local


@pytest.mark.parametrize("rule", data().models, ids=lambda rule: f"{rule.match} {','.join(rule.at)}")
def test_every_rule_holds_at_its_providers(rule):
    model = re.sub(r"\[.*?(\w)\]", r"\1", rule.match).replace("*", "")
    for provider in rule.at or ("custom",):
        assert provider in services()
        profile = profile_of(provider, model)
        assert msgspec.json.decode(msgspec.json.encode(profile), type=Profile) == profile
    if rule.at:
        later = {
            name for other in data().models if other is not rule and set(other.at) & set(rule.at) for name in other.set
        }
        for name, raw in rule.set.items():
            if name not in later:
                assert getattr(profile_of(rule.at[0], model), name) == msgspec.json.decode(raw)


def test_rows_name_nobody_twice():
    names = [also for name, service in services().items() for also in (name, *service.also)]
    assert sorted(names) == sorted(set(names))


def test_two_plans_of_one_host_are_told_apart_by_their_path():
    assert service_at("https://api.z.ai/api/coding/paas/v4/") == "zai-coding"
    assert service_at("https://open.bigmodel.cn/api/paas/v4") == "zhipu"


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.4-mini", "gpt-5.6-terra", "gpt-6-astra", "o3", "o4-mini"])
def test_reasoning_models_of_openai_are_asked_by_responses(model: str):
    assert profile_of("openai", model).wire == "openai_responses"
    assert profile_of("openai", model, wire="openai_chat").wire == "openai_chat"
    assert profile_of("openai", model, base_url="https://proxy.test/v1").wire == "openai_chat"
    assert profile_of("openrouter", f"openai/{model}").wire == "openai_chat"


def test_deployments_named_like_reasoning_models_are_asked_by_responses_too():
    azure = profile_of("azure", "gpt-5.6-sol", base_url="https://me.openai.azure.com/")
    assert azure.wire == "openai_responses"
    assert address_of(azure, "/responses") == "https://me.openai.azure.com/openai/v1/responses"
    chat = profile_of("azure", "gpt-5.6-sol", base_url="https://me.openai.azure.com/", wire="openai_chat")
    assert "/deployments/gpt-5.6-sol/" in address_of(chat, "/chat/completions")


def test_other_models_of_openai_stay_with_chat_completions():
    assert profile_of("openai", "gpt-4o").wire == "openai_chat"
    assert profile_of("groq", "openai/gpt-oss-120b").wire == "openai_chat"
    assert owner_of("gpt-oss-120b") == ""


@pytest.mark.parametrize(
    ("provider", "url", "expected"),
    [
        ("lab", "https://api.deepseek.com/v1", ("always", "toggle")),
        ("custom", "https://api.deepseek.com/v1", ("always", "toggle")),
        ("lab", "https://lab.test/v1", ("none", "")),
        ("lab", "https://api.anthropic.com/v1", ("none", "")),
    ],
)
def test_a_provider_of_ones_own_is_known_by_its_host(provider: str, url: str, expected: tuple[str, str]):
    profile = profile_of(provider, "m", base_url=url)
    assert (profile.provider, profile.wire) == (provider, "openai_chat")
    assert (profile.reasoning_echo, profile.thinking) == expected


def test_what_a_service_takes_holds_for_models_of_others():
    groq = profile_of("groq", "moonshotai/kimi-k2-instruct-0905")
    assert (groq.reasoning_echo, groq.token_parameter) == ("none", "max_completion_tokens")
    together = profile_of("together", "moonshotai/Kimi-K3")
    assert (together.thinking, together.efforts) == ("reasoning_switch", {})


def test_an_unknown_window_is_assumed_and_said():
    hosted, said = assumed(profile_of("groq", "brand-new"))
    assert (hosted.window, "128,000" in said, "models.catalog" in said) == (128_000, True, True)
    own, _ = assumed(profile_of("custom", "m", base_url="http://x.test/v1"))
    assert own.window == 32_768
    assert assumed(profile_of("openai", "gpt-4o"))[1] == ""


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
    assert (profile.cache_marks, profile.cache_ttl) == (True, 3600)
    assert not profile_of("openrouter", "openai/gpt-5.6-luna").cache_marks


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
