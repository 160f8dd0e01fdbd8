"""`/subagents`: the helpers of a conversation, as people see them."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.orders import Order
from limpet.assistant.services import Services
from limpet.assistant.subagents import depth_of
from limpet.assistant.subagents import stop as stop_helpers
from limpet.store import subagents
from limpet.store.sql import Connection
from limpet.store.subagents import Helper

DAY = 86_400_000
LISTED = 10
"""Helpers that are over and are still shown, of the last day."""
USAGE = "/subagents lists them, /subagents stop ID (or all) stops."


async def show_or_stop(order: Order) -> str:
    services, key = order.conversation.services, order.conversation.key
    words = order.arguments.split()
    if words[:1] == ["stop"] and len(words) == 2:
        return await _stop(services, key, words[1])
    if words:
        return USAGE
    now = services.clock.now()

    def look(connection: Connection) -> list[str]:
        over = subagents.newest_over(connection, key, since=now - DAY, limit=LISTED)
        return tree(connection, [*over, *subagents.open_under(connection, key)], now=now)

    lines = services.store.read(look)
    return "\n".join(lines) if lines else "There are no helpers here."


async def stop_all(services: Services, key: str) -> int:
    """Stop all helpers of a conversation; how many there were."""
    found = services.store.read(lambda connection: subagents.open_under(connection, key))
    if found:
        await stop_helpers(services, found)
    return len(found)


async def _stop(services: Services, key: str, name: str) -> str:
    found = services.store.read(lambda connection: subagents.open_under(connection, key))
    named = [one for one in found if name == "all" or one.id.startswith(name)]
    if not named or (len(named) > 1 and name != "all"):
        return f"{len(named)} helpers that are at work are called {name}. {USAGE}"
    await stop_helpers(services, named)
    return "\n".join(f"{one.id} is stopped: {one.title}" for one in named)


def tree(connection: Connection, found: Sequence[Helper], *, now: int) -> list[str]:
    """A line for each helper: its state, age, cost and task, those of helpers beneath them."""
    ordered = sorted(found, key=lambda one: (_path(found, one), one.created))
    return [f"{'  ' * max(0, depth_of(one.key) - 1)}{line(connection, one, now=now)}" for one in ordered]


def _path(found: Sequence[Helper], one: Helper) -> tuple[int, ...]:
    """The places of those above a helper, and its own, in the order in which they were spawned."""
    return tuple(place for place, other in enumerate(found) if f"{one.key}:".startswith(f"{other.key}:"))


def line(connection: Connection, one: Helper, *, now: int) -> str:
    cost = subagents.cost_of(connection, one.key)
    spent = "" if cost is None else f", ${cost / 1e6:.4f}"
    return f"{one.id} {one.state}, {_lasted((one.ended or now) - one.created)}{spent}: {one.title}"


def _lasted(time: int) -> str:
    """Milliseconds in words."""
    seconds = max(0, time) // 1000
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
