"""The chunks of Chat Completions, as far as they are read, with what compatible services add."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from limpet.llm.assemble import cost_of
from limpet.types.profile import Profile
from limpet.types.usage import Usage


class Function(Struct):
    name: str | None = None
    arguments: object = None


class Google(Struct):
    thought_signature: str = ""


class Extra(Struct):
    google: Google | None = None

    @property
    def signature(self) -> str:
        return self.google.thought_signature if self.google is not None else ""


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Extra | None = None


class Part(Struct):
    type: str = ""
    text: str | None = None
    thinking: object = None


class Delta(Struct):
    content: str | list[Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Part] | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(Struct):
    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class PromptDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class OutputDetails(Struct):
    reasoning_tokens: int | None = None


class WireUsage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None


class Chunk(Struct):
    choices: list[Choice] | None = None
    usage: WireUsage | None = None
    error: object = None
    message: object = None
    kind: str | None = field(default=None, name="object")


def usage_of(wire: WireUsage, profile: Profile) -> Usage:
    prompt = wire.prompt_tokens or 0
    details = wire.prompt_tokens_details or PromptDetails()
    read = details.cached_tokens or wire.prompt_cache_hit_tokens or wire.cached_tokens or 0
    write = details.cache_write_tokens or 0
    reasoning = (wire.completion_tokens_details or OutputDetails()).reasoning_tokens or 0
    usage = Usage(
        input=max(0, prompt - read - write),
        output=wire.completion_tokens or 0,
        cache_read=read,
        cache_write=write,
        reasoning=reasoning,
    )
    if profile.server_cost and wire.cost is not None:
        return msgspec.structs.replace(usage, cost=round(wire.cost * 1_000_000))
    return cost_of(usage, profile)
