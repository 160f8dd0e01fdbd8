"""A `Model` out of a choice: its wire, metered per attempt, asked again when a failure passes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from limpet.llm.choose import Choice
from limpet.llm.http import Deadlines, Http
from limpet.llm.metered import Countable, Metered
from limpet.llm.retry import Patience, Retrying
from limpet.llm.wire.service import NOBODY, Witness
from limpet.types.ports import Blobs, Meter, Model
from limpet.types.profile import Profile

LOCAL_FACTOR = 5.0
"""Deadlines of servers on the owner's own machine are so many times as long."""


def build(
    choice: Choice,
    *,
    blobs: Blobs | None = None,
    meter: Meter | None = None,
    deadlines: Deadlines = Deadlines(),  # noqa: B008 (frozen)
    local_factor: float = LOCAL_FACTOR,
    headers: Mapping[str, str] | None = None,
    witness: Witness = NOBODY,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Model:
    """The model to hand to the loop. Nothing is connected or loaded before its first request; `close` it at the end.

    `headers` go with every request; `witness` remembers what failures teach.
    """
    if choice.profile.local:
        deadlines = deadlines.times(local_factor)
    if not choice.profile.streaming:  # nothing comes before all has come
        deadlines = structs.replace(deadlines, first_byte=deadlines.total, idle=deadlines.total)
    http = Http(choice.profile.provider, deadlines=deadlines, headers=headers)
    wire = wire_of(choice.profile, choice.key, blobs=blobs, http=http, witness=witness)
    model = wire if meter is None else Metered(wire, meter=meter)
    return Retrying(model, patience=patience)


def wire_of(profile: Profile, key: str, *, blobs: Blobs | None, http: Http, witness: Witness = NOBODY) -> Countable:
    """The bare wire that `profile` names. Only its module is imported."""
    if profile.wire == "embedded":
        from limpet.llm.embedded import Embedded

        return Embedded(profile)
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
    return Wire(profile, key=key, http=http, blobs=blobs, witness=witness)
