"""A `Model` out of a choice: its wire, metered per attempt, asked again when a failure passes."""

from __future__ import annotations

from limpet.llm.choose import Choice
from limpet.llm.http import Deadlines, Http
from limpet.llm.metered import Metered
from limpet.llm.retry import Patience, Retrying
from limpet.types.ports import Blobs, Meter, Model

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
    model = _wire(choice, blobs, deadlines=deadlines)
    if meter is not None:
        model = Metered(model, meter=meter)
    return Retrying(model, patience=patience)


def _wire(choice: Choice, blobs: Blobs | None, *, deadlines: Deadlines) -> Model:
    profile = choice.profile
    if profile.wire == "embedded":
        from limpet.llm.embedded import Embedded

        return Embedded(profile)
    http = Http(profile.provider, deadlines=deadlines.times(LOCAL_FACTOR) if profile.local else deadlines)
    if profile.wire == "anthropic":
        from limpet.llm.wire.anthropic import Anthropic

        return Anthropic(profile, key=choice.key, http=http, blobs=blobs)
    from limpet.llm.wire.openai_chat import OpenAIChat

    return OpenAIChat(profile, key=choice.key, http=http, blobs=blobs)
