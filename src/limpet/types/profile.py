"""Profiles: what is particular about a model and its service, as data."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limpet.types.message import Producer

Wire = Literal["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "embedded"]

SchemaDialect = Literal["", "openai", "strict", "anthropic", "gemini", "moonshot"]
"""Which part of JSON Schema a service takes for tools; empty: what its wire usually speaks."""

ThinkingStyle = Literal[
    "",
    "effort",
    "toggle",
    "toggle_adaptive",
    "switch",
    "reasoning_switch",
    "budget",
    "adaptive",
    "between_tools",
    "effort_only",
    "openrouter",
    "template",
]
"""How a request asks for more or less reasoning: `reasoning_effort`; `thinking.type` enabled or disabled; the same
with `adaptive` for on (MiniMax); `enable_thinking` (Qwen); `reasoning.enabled` (Together); `thinking.budget_tokens`;
adaptive with an effort; the same where it cannot be off but between tools only; the effort alone (it always reasons);
the object `reasoning` of OpenRouter; `enable_thinking` of a chat template. Empty: not at all."""

ReasoningField = Literal["reasoning_content", "reasoning", "reasoning_details"]
"""The field in which Chat Completions services take reasoning back."""


class Price(Struct, frozen=True, omit_defaults=True):
    """Micro-dollars per million tokens, which is the same number as dollars per million times 1,000,000."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0


class Profile(Struct, frozen=True, omit_defaults=True):
    """One model at one service. `window` and `max_output` are tokens, 0 = not known.

    `streaming`: the service can stream; without it the whole answer comes at once. `extra` are fields that go with
    every request of Chat Completions. `local`: a server on the owner's own machine (deadlines are five times longer,
    no price). `efforts` are the service's words for a level (`off`, `low`, `medium`, `high`) where they differ from
    ours; an empty word leaves the parameter out. `reasoning_echo`: which earlier reasoning is sent back: `own` the
    model's own; `always` also an empty one with every foreign answer that has calls. `text_calls` names the ways in
    which the model may write calls as text, `think_tags` says that it may write its reasoning as text.
    `effort_with_tools`: what the service takes of `reasoning_effort` beside tools. `server_cost`: the service tells
    the price itself. `cache_key`: it takes the session as a key for its cache. `cache_ttl`: seconds it keeps a prompt
    prefix, 0 = no cache; `cache_marks`: Chat Completions that want to be told where it ends. `token_factor` multiplies
    estimates.

    What an address needs: `key_header` carries the bare key instead of `Authorization: Bearer`; `path` replaces the
    wire's own path (`{model}` stands for the model); `query` is added to it.
    What a history needs: `reasoning_pad` stands for reasoning that is demanded but missing, `call_signature` for the
    signature of a call that another model made; `id_length`: ids of calls are exactly that many letters and digits.
    `refused`: fields of the request that the service was found to refuse, or `field=value` with the value as JSON.
    """

    provider: str
    wire: Wire
    model: str
    base_url: str = ""
    window: int = 0
    max_output: int = 0
    local: bool = False
    tools: bool = True
    images: bool = False
    parallel_calls: bool = True
    streaming: bool = True
    token_parameter: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    stream_usage: bool = True
    key_header: str = ""
    path: str = ""
    query: str = ""
    schema: SchemaDialect = ""
    id_length: int = 0
    call_signature: str = ""
    reasoning_echo: Literal["none", "own", "always"] = "none"
    reasoning_pad: str = ""
    reasoning_field: ReasoningField = "reasoning_content"
    text_calls: tuple[str, ...] = ()
    think_tags: bool = False
    thinking: ThinkingStyle = ""
    efforts: dict[str, str] = {}
    extra: dict[str, str | bool | int] = {}
    effort_with_tools: Literal["free", "absent", "none"] = "free"
    server_cost: bool = False
    cache_key: bool = False
    cache_ttl: int = 0
    cache_marks: bool = False
    token_factor: float = 1.0
    price: Price | None = None
    refused: tuple[str, ...] = ()

    @property
    def producer(self) -> Producer:
        return Producer(provider=self.provider, wire=self.wire, model=self.model)

    @property
    def reference(self) -> str:
        return f"{self.provider}/{self.model}"
