"""A `Model` out of a choice: its wire, metered per attempt, asked again when a failure passes."""

from __future__ import annotations

from limpet.llm.choose import Choice
from limpet.llm.http import Deadlines, Http
from limpet.llm.metered import Metered
from limpet.llm.retry import Patience, Retrying
from limpet.types.ports import Blobs, Meter, Model
from limpet.types.profile import Profile

LOCAL_FACTOR = 5.0


def build(
    choice: Choice,
    *,
    blobs: Blobs | None = None,
    meter: Meter | None = None,
    deadlines: Deadlines = Deadlines(),  # noqa: B008 (frozen)
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Model:
    """The model to hand to the loop. Nothing is connected or loaded before its first request; `close` it at the end."""
    model = wire_of(choice.profile, choice.key, blobs=blobs, deadlines=deadlines)
    if meter is not None:
        model = Metered(model, meter=meter)
    return Retrying(model, patience=patience)


def wire_of(profile: Profile, key: str, *, blobs: Blobs | None, deadlines: Deadlines) -> Model:
    """The bare wire that `profile` names. Only its module is imported."""
    if profile.wire == "embedded":
        from limpet.llm.embedded import Embedded

        return Embedded(profile)
    http = Http(profile.provider, deadlines=deadlines.times(LOCAL_FACTOR) if profile.local else deadlines)
    match profile.wire:
        case "anthropic":
            from limpet.llm.wire.anthropic import Anthropic as Wire
        case "openai_responses":
            from limpet.llm.wire.openai_responses import OpenAIResponses as Wire
        case "gemini":
            from limpet.llm.wire.gemini import Gemini as Wire
        case "bedrock":
            from limpet.llm.wire.bedrock import Bedrock as Wire
        case _:
            from limpet.llm.wire.openai_chat import OpenAIChat as Wire
    return Wire(profile, key=key, http=http, blobs=blobs)
