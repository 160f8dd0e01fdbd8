"""Bindings: which agent answers. The most particular one wins, of several such the first (FEATURES I4)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from limpet.config.channels import BindingSettings
from limpet.errors import ConfigError
from limpet.types.channel import Arrival

TIERS = ("person or chat", "what it is a thread of", "space and role", "space", "account", "channel")
"""From the most particular to the most general; then comes the agent of the channel's own settings."""


class Route(Struct, frozen=True):
    """Who answers, and why: the number of the binding (from 1; 0 = none fits), in words."""

    agent: str
    number: int
    why: str


def tier(binding: BindingSettings) -> int:
    """Index into `TIERS`. Raises `ConfigError` for a binding without a condition."""
    given = (
        binding.peer or binding.chat,
        binding.parent,
        binding.space and binding.roles,
        binding.space,
        binding.account,
        binding.channel,
    )
    found = next((number for number, one in enumerate(given) if one), None)
    if found is None:
        raise ConfigError(
            f"A binding to the agent {binding.agent} has no condition.",
            hint="Name a channel, account, space, chat or peer; or set `agent` of the channel itself.",
        )
    return found


def check(bindings: Sequence[BindingSettings], *, agents: Sequence[str], kinds: Sequence[str]) -> None:
    """Raises `ConfigError` for a binding that could never do what it says."""
    seen: dict[str, int] = {}
    for number, binding in enumerate(bindings, 1):
        where = f"gateway.bindings, number {number}"
        tier(binding)
        if binding.agent not in agents:
            raise ConfigError(f"{where}: there is no agent {binding.agent}.", hint=f"There are: {', '.join(agents)}.")
        if binding.channel and binding.channel not in kinds:
            raise ConfigError(
                f"{where}: there is no channel {binding.channel}.", hint=f"There are: {', '.join(kinds)}."
            )
        if binding.roles and not binding.space:
            raise ConfigError(f"{where}: roles belong to a space.", hint="Name the guild or team as `space`.")
        if (binding.peer or binding.chat or binding.parent or binding.space or binding.account) and not binding.channel:
            raise ConfigError(f"{where}: ids belong to a channel.", hint="Name it as `channel`.")
        conditions = repr(_conditions(binding))
        if (before := seen.setdefault(conditions, number)) != number:
            raise ConfigError(f"{where} can never be reached: number {before} has the same conditions.")


def choose(bindings: Sequence[BindingSettings], arrival: Arrival, *, default: str) -> Route:
    """Who answers `arrival`; `default` where no binding fits."""
    fitting = [(tier(binding), number, binding) for number, binding in enumerate(bindings, 1) if fits(binding, arrival)]
    if not fitting:
        return Route(default, 0, "no binding fits: the agent of the channel's settings")
    rank, number, binding = min(fitting, key=lambda one: one[:2])
    return Route(binding.agent, number, f"binding {number} ({TIERS[rank]})")


def fits(binding: BindingSettings, arrival: Arrival) -> bool:
    """Whether all conditions that `binding` names hold."""
    address = arrival.address
    plain = (
        (binding.channel, address.channel),
        (binding.account, address.account),
        (binding.peer, arrival.sender),
        (binding.chat, address.chat),
        (binding.parent, arrival.parent or address.chat),
        (binding.space, arrival.space),
    )
    roles = not binding.roles or any(role in binding.roles for role in arrival.roles)
    return roles and all(not wanted or wanted == found for wanted, found in plain)


def explain(bindings: Sequence[BindingSettings], arrival: Arrival, *, default: str) -> list[str]:
    """A line for each binding in the order in which they count, and who answers."""
    ranked = sorted(enumerate(bindings, 1), key=lambda one: (tier(one[1]), one[0]))
    lines = [
        f"{number}. {TIERS[tier(one)]}: {_conditions(one)} -> {one.agent}: {'fits' if fits(one, arrival) else 'no'}"
        for number, one in ranked
    ]
    route = choose(bindings, arrival, default=default)
    return [*lines, f"answers: {route.agent} ({route.why})"]


def _conditions(binding: BindingSettings) -> str:
    given = (
        ("channel", binding.channel),
        ("account", binding.account),
        ("peer", binding.peer),
        ("chat", binding.chat),
        ("parent", binding.parent),
        ("space", binding.space),
        ("roles", ", ".join(sorted(binding.roles))),
    )
    return " ".join(f"{name}={value}" for name, value in given if value)
