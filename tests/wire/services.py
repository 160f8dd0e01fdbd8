"""Every wire with its strict fake, as rows of the conformance matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from limpet.testing.fakes import FakeAnthropic, FakeAzure, FakeBedrock, FakeGemini, FakeOpenAI, FakeResponses, Rules
from limpet.testing.fakes.gemini import STAND_IN
from limpet.testing.fakes.server import FakeServer
from limpet.types.profile import Profile


class Service(NamedTuple):
    """A profile, the fake that is its service, and rules beyond the fake's own."""

    fake: Callable[..., FakeServer]
    profile: Profile
    rules: Mapping[str, object] = MappingProxyType({})

    def start(self, script, **rules: object) -> FakeServer:
        return self.fake(script, rules=Rules(**{**self.rules, **rules}))


def chat(provider: str, **fields: object) -> Profile:
    return Profile(provider=provider, wire="openai_chat", model=f"{provider}-1", images=True, **fields)


AZURE = {
    "path": "/openai/deployments/{model}/chat/completions",
    "query": "api-version=2025-04-01",
    "key_header": "api-key",
}
SERVICES = {
    "openai_chat": Service(FakeOpenAI, chat("openai")),
    "openai_responses": Service(
        FakeResponses,
        Profile(provider="openai", wire="openai_responses", model="g", images=True, thinking="effort", cache_key=True),
    ),
    "anthropic": Service(
        FakeAnthropic, Profile(provider="anthropic", wire="anthropic", model="c", images=True, cache_ttl=300)
    ),
    "gemini": Service(
        FakeGemini,
        Profile(provider="gemini", wire="gemini", model="gemini-3", images=True, call_signature=STAND_IN),
    ),
    "bedrock": Service(
        FakeBedrock,
        Profile(provider="bedrock", wire="bedrock", model="us.anthropic.c-v1:0", images=True, cache_ttl=300),
    ),
    "azure": Service(FakeAzure, chat("azure", **AZURE)),
    "kimi": Service(
        FakeOpenAI,
        chat("moonshot", reasoning_echo="always", reasoning_pad=" ", schema="moonshot"),
        {"kimi": True},
    ),
    "mistral": Service(FakeOpenAI, chat("mistral", id_length=9), {"id_pattern": "[A-Za-z0-9]{9}"}),
    "openrouter": Service(
        FakeOpenAI, chat("openrouter", cache_marks=True, cache_ttl=3600, thinking="openrouter"), {"cache_marks": True}
    ),
    "gemini_chat": Service(FakeOpenAI, chat("google", call_signature=STAND_IN), {"signatures": True}),
}
WIRES = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "azure")
