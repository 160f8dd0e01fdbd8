"""Messages: what goes to a model and what comes back."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from limpet.types.content import AssistantBlock, ResultBlock, Text, ToolCall, UserBlock
from limpet.types.tool import ToolSpec
from limpet.types.usage import Usage

StopReason = Literal["stop", "tool_calls", "length", "refusal", "cancelled", "error"]
ToolChoice = Literal["auto", "none"]


class Producer(Struct, frozen=True):
    """Who made an answer. Thinking and signatures are replayed only to an equal producer."""

    provider: str
    wire: str
    model: str


class UserMessage(Struct, frozen=True, tag="user", omit_defaults=True):
    """What a person (or an event) said. `runtime` is metadata for the model, not shown to people."""

    content: tuple[UserBlock, ...]
    runtime: str = ""


class AssistantMessage(Struct, frozen=True, tag="assistant", omit_defaults=True):
    """One complete answer of a model. Partial streams never become one."""

    content: tuple[AssistantBlock, ...]
    producer: Producer
    stop: StopReason = "stop"
    usage: Usage = Usage()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, Text))


class ToolMessage(Struct, frozen=True, tag="tool", omit_defaults=True):
    """The result of one call, as a request carries it. `call_id` is unique within a request."""

    call_id: str
    name: str
    content: tuple[ResultBlock, ...]
    is_error: bool = False


Message = UserMessage | AssistantMessage | ToolMessage


ThinkingLevel = Literal["off", "low", "medium", "high"]


class Sampling(Struct, frozen=True, omit_defaults=True):
    """Settings of one request; None means the provider's own default."""

    temperature: float | None = None
    max_tokens: int | None = None
    thinking: ThinkingLevel | None = None


Rhythm = Literal["slow", "quick", "once"]
"""When the next request of a conversation may come: within the hour (people), within minutes (steps of a program that
nobody talks to), never (a single question)."""


class Request(Struct, frozen=True):
    """Everything a wire needs for one request.

    `session` names the conversation: wires reuse what they encoded of its earlier messages. Providers take it as a
    cache key, unless `cache_key` names one that it shares with others (a fork with its origin). `messages` start with
    a user message, neighbours differ in role (several `ToolMessage`s follow their assistant message), and each call
    has exactly one `ToolMessage`. `rhythm` decides how long a provider is asked to keep the prefix.
    """

    session: str
    system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    tool_choice: ToolChoice = "auto"
    sampling: Sampling = Sampling()
    rhythm: Rhythm = "slow"
    cache_key: str = ""
