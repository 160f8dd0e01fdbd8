"""What the next request of a conversation holds, in estimated tokens; where the cache ends, and why it last broke."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from limpet.assistant.orders import Talk
from limpet.llm.cache_marks import takes_marks
from limpet.llm.tokens import estimate, message_tokens
from limpet.prompt.deferral import about_left_out
from limpet.prompt.deferral import tokens as tokens_of_tools
from limpet.session import breaks
from limpet.session.breaks import Break
from limpet.session.room import room_of
from limpet.tools.deferred import deferrable
from limpet.types.entry import PromptEntry


class Part(Struct, frozen=True):
    """A section of the prompt, the tools, or the messages. `text` is what a section says."""

    name: str
    tokens: int
    text: str = ""


class Inspection(Struct, frozen=True):
    """`parts` in the order of the request, the messages last; `limit` is what it may have, `window` what the model can.

    `lasts` is seconds for which the provider keeps a prefix (0 = it keeps none), `marked` whether we mark where it
    ends; `breaks` are the changes of the prefix, `hit_rate` the share that was read from the cache, None = nothing was
    read yet. `deferred` says which tools the model has to seek.
    """

    model: str
    parts: tuple[Part, ...]
    limit: int
    window: int
    tier: str
    reason: str
    lasts: int
    marked: bool
    hit_rate: float | None
    breaks: Sequence[Break]
    deferred: str = ""

    @property
    def total(self) -> int:
        return sum(one.tokens for one in self.parts)

    @property
    def prefix(self) -> int:
        """Tokens of instructions and tools, after which the cache has a break point."""
        return sum(one.tokens for one in self.parts[:-1])


async def inspect(conversation: Talk) -> Inspection:
    """Raises `NoModelError`, `UserError` when no prompt fits the model."""
    services = conversation.services
    profile = (await services.models.get(conversation.model_reference())).profile
    log, prompt = conversation.log(), await current_prompt(conversation)
    factor = services.weights.factor(profile)
    fixed = [(section.name, estimate(section.text), section.text) for section in prompt.sections]
    fixed.append((f"tools ({len(prompt.tools)})", tokens_of_tools(prompt.tools), ""))
    messages = sum(map(message_tokens, log.messages()))
    rows = [Part(name, round(tokens * factor), text) for name, tokens, text in (*fixed, ("messages", messages, ""))]
    room, read = room_of(profile.window), breaks.used(log.entries)
    there = [tool.spec for tool in services.tools if deferrable(tool)]
    return Inspection(
        model=profile.reference,
        parts=tuple(rows),
        limit=room.limit,
        window=room.window,
        tier=prompt.tier,
        reason=prompt.reason,
        lasts=profile.cache_ttl,
        marked=takes_marks(profile),
        hit_rate=breaks.hit_rate(read) if read.total else None,
        breaks=breaks.breaks(log.entries),
        deferred=about_left_out(prompt.tools, there, profile) if profile.tools else "",
    )


async def current_prompt(conversation: Talk) -> PromptEntry:
    """The snapshot that the next request uses, or would use if it were the first."""
    model = await conversation.services.models.get(conversation.model_reference())
    prompt = conversation.log().prompt
    return prompt or conversation.services.prompting.snapshot(model.profile, reason="preview", key=conversation.key)
