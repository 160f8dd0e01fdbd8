"""What a model is used for, and how it is asked then: settings of one purpose made whole."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from limpet.config.schema import ChatPurpose, PurposeSettings
from limpet.config.schema import Purpose as OwnSettings
from limpet.types.message import Sampling, ThinkingLevel, ToolChoice
from limpet.types.profile import Profile

PurposeName = Literal["chat", "summary", "heartbeat", "cron", "subagent", "vision"]
"""What answers in text. Embedding, transcription, speech and images have settings of their own kinds."""

LOCAL_TEMPERATURE = 0.3
"""Of local models with tools where nothing is set (DESIGN 13): small ones call better with a cool head."""


class Purpose(Struct, frozen=True):
    """`model` is a reference or a short name; empty: the model of the conversation."""

    model: str = ""
    sampling: Sampling = Sampling()
    tool_choice: ToolChoice = "auto"


def with_model() -> list[str]:
    """The purposes that may have a model of their own."""
    purposes = PurposeSettings()
    return [name for name in purposes.__struct_fields__ if hasattr(getattr(purposes, name), "model")]


def purpose_of(settings: PurposeSettings, name: PurposeName) -> Purpose:
    """The settings of a purpose; what it leaves open is as for the chat, and then the provider's own."""
    chat = settings.chat
    own: ChatPurpose = getattr(settings, name)
    return Purpose(
        model=own.model if isinstance(own, OwnSettings) else "",
        sampling=Sampling(
            temperature=own.temperature if own.temperature is not None else chat.temperature,
            max_tokens=own.max_tokens or chat.max_tokens,
            thinking=own.thinking or chat.thinking,
        ),
        tool_choice=own.tool_choice or chat.tool_choice or "auto",
    )


def sampling_for(
    purpose: Purpose, profile: Profile, *, tools: bool = True, thinking: ThinkingLevel | None = None
) -> Sampling:
    """How to ask the model of `profile`. `tools`: some are offered; `thinking`: what the session wants instead."""
    sampling = purpose.sampling
    if thinking is not None:
        sampling = structs.replace(sampling, thinking=thinking)
    if sampling.temperature is None and profile.local and profile.tools and tools:
        sampling = structs.replace(sampling, temperature=LOCAL_TEMPERATURE)
    return sampling
