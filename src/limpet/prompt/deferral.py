"""Which tools stand in a prompt: all of them while they are small, else those that are used most (F13)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from limpet.llm.tokens import estimate
from limpet.prompt.snapshot import tier_for
from limpet.types.profile import Profile
from limpet.types.tool import ToolSpec

SHARE = 0.10
"""The part of the window that the schemas of all tools may take before some are left out."""
_WINDOW = 128_000
"""Tokens, where the window is not known."""


class Choice(Struct, frozen=True):
    """The tools there are. Those `built_in` always stand in the prompt; the `rare` ones among them (by name) where the
    `ways` to find and call what is left out are no shorter; those of servers (`served`) while there is room. The ways
    do when something is left out, or when more may appear later (`open`)."""

    built_in: Sequence[ToolSpec]
    rare: Collection[str] = ()
    served: Sequence[ToolSpec] = ()
    ways: Sequence[ToolSpec] = ()
    open: bool = False


def chosen(choice: Choice, profile: Profile) -> tuple[ToolSpec, ...]:
    """What a model is told of, in order: built in, then of servers. A small window never gets those of servers."""
    built_in, ways = choice.built_in, tuple(choice.ways)
    ways_now = ways if choice.open else ()
    if tier_for(profile.window) == "tiny":
        return (*built_in, *ways_now)
    core = tuple(spec for spec in built_in if spec.name not in choice.rare)
    short, listed = (*core, *ways), (*built_in, *ways_now)
    if ways and tokens(short) < tokens(listed):
        listed = short
    everything = (*listed, *choice.served)
    if tokens(everything) <= allowed(profile) or not ways or tokens(short) >= tokens(everything):
        return everything
    return short


def allowed(profile: Profile) -> int:
    """Tokens that the schemas of all tools may take."""
    return int((profile.window or _WINDOW) * SHARE)


def tokens(specs: Iterable[ToolSpec]) -> int:
    """Estimated tokens of what a model is told of `specs`."""
    return sum(estimate(f"{spec.name} {spec.description} {bytes(spec.parameters).decode()}") for spec in specs)


def about_left_out(told: Sequence[ToolSpec], there: Sequence[ToolSpec], profile: Profile) -> str:
    """Which of the tools that are `there` stand not in the prompt, and why, in a line; empty when all do."""
    known = {spec.name for spec in told}
    left = [spec for spec in there if spec.name not in known]
    if not left:
        return ""
    limit = allowed(profile)
    if tier_for(profile.window) == "tiny":
        why = "the window is small"
    elif tokens((*told, *left)) > limit:
        why = f"all together would pass {SHARE:.0%} of the window ({limit:,} tokens)"
    else:
        why = "they are rarely used, or came after this prompt was made"
    return f"deferred: {len(left)} tools ({tokens(left):,} tokens), found by tool_search: {why}"
