"""Why the prefix of a session changed: the entries after which a request no longer begins with the one before it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from limpet.types.entry import AssistantEntry, Compaction, Entry, ImageAged, Leaf, ModelChange, PromptEntry, Prune
from limpet.types.usage import NO_USAGE, Usage

_REDUCTIONS = {
    "summary": "the older part was summarised",
    "reduced": "the older part was shortened without a summary",
    "window": "the oldest turns were dropped",
}


class Break(Struct, frozen=True):
    """A change of the prefix at `at` (UTC ms), for the reason `why`."""

    at: int
    why: str


def breaks(entries: Iterable[Entry]) -> list[Break]:
    """Every change of the prefix in a log, in order. The first prompt of a session is none."""
    found: list[Break] = []
    begun = False
    for entry in entries:
        if why := _why(entry, begun=begun):
            found.append(Break(entry.at, why))
        begun = begun or isinstance(entry.payload, PromptEntry)
    return found


def used(entries: Iterable[Entry]) -> Usage:
    """What all answers of a log used together."""
    return sum((e.payload.message.usage for e in entries if isinstance(e.payload, AssistantEntry)), NO_USAGE)


def hit_rate(usage: Usage) -> float:
    """The share of what was read that came from the provider's cache, 0 to 1."""
    read = usage.input + usage.cache_read + usage.cache_write
    return usage.cache_read / read if read else 0.0


def _why(entry: Entry, *, begun: bool) -> str:
    match entry.payload:
        case PromptEntry(reason=reason):
            return f"new instructions: {reason}" if begun else ""
        case Compaction(how=how):
            return {
                "summary": "summarised",
                "reduced": "shortened without a summary",
                "window": "oldest turns dropped",
            }[how]
        case Prune(targets=targets, how=how):
            return f"{len(targets)} old results {'cleared' if how == 'hard' else 'shortened'}"
        case ImageAged(targets=targets):
            return f"pictures of {len(targets)} old messages left out"
        case ModelChange(model=model):
            return f"model changed to {model}"
        case Leaf():
            return "gone back to an earlier message"
        case _:
            return ""
