"""Commands that only look, and `/stop`: they need no lease and are answered at once."""

from __future__ import annotations

import time

from limpet.assistant import asking
from limpet.assistant.commands_subagents import stop_all
from limpet.assistant.inspection import Inspection, inspect
from limpet.assistant.orders import Order, Talk
from limpet.assistant.services import Keeping
from limpet.store import entries, sessions, spending, turns
from limpet.store import usage as usage_rows
from limpet.store.turns import TurnRow
from limpet.types.usage import Usage

DAY = 24 * 3600 * 1000
"""Milliseconds."""


async def status(order: Order) -> str:
    conversation = order.conversation
    services, key = conversation.services, conversation.key
    model = await services.models.get(conversation.model_reference())
    live = services.store.read(lambda connection: sessions.live(connection, key))
    lines = [f"model: {model.profile.reference}", f"session: {key}"]
    if live is None:
        return "\n".join([*lines, "no conversation yet"])
    turn = services.store.read(lambda connection: turns.live(connection, live.id))
    count = services.store.read(lambda connection: entries.last_seq(connection, live.id))
    return "\n".join(
        [
            *lines,
            f"id: {live.id}",
            f"entries: {count}",
            f"turn: {_doing(turn)}",
            f"used: {_used(conversation, live.id)}",
            f"kept: {_kept(services.rules.keeping)}",
        ]
    )


_ROLES = {"owner": "my owner", "peer": "somebody who may talk to me"}


async def whoami(order: Order) -> str:
    inbound = order.row.inbound
    address = inbound.address
    return "\n".join(
        (
            f"you: {inbound.name or 'no name'}, {address.channel} id {inbound.sender or '-'}",
            f"to me: {_ROLES.get(inbound.trust, inbound.trust)}",
            f"chat: {address.chat}{f', thread {address.thread}' if address.thread else ''}",
            f"session: {order.conversation.key}",
        )
    )


def _kept(keeping: Keeping) -> str:
    """How long things are kept, in words."""
    days = {
        "ended conversations": keeping.sessions,
        "archives": keeping.archives,
        "rows of what came and went": keeping.rows,
    }
    limits = ", ".join(f"{what} {count} days" for what, count in days.items() if count)
    return f"{limits}; all else for ever" if limits else "everything, for ever"


async def show_context(order: Order) -> str:
    return await context(order.conversation)


async def context(conversation: Talk) -> str:
    """The next request by its parts in estimated tokens, where the cache ends, how often it was hit, why it broke."""
    found = await inspect(conversation)
    rows = [(one.name, one.tokens) for one in found.parts]
    rows += [("total", found.total), ("may have", found.limit), ("window", found.window)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {tokens:>9,}" for name, tokens in rows]
    lines += ["", f"prompt: {found.tier}, made for: {found.reason}"]
    lines += [found.deferred] if found.deferred else []
    return "\n".join([*lines, *_cache(found)])


def _cache(found: Inspection) -> list[str]:
    """What is known of the provider's cache in this conversation, as lines."""
    if not found.lasts:
        return ["cache: this service keeps none"]
    points = f"after tools and instructions ({found.prefix:,} tokens), after the newest message"
    marked = "break points" if found.marked else "found by the service itself, at the most"
    lines = [f"cache: kept {found.lasts // 60} min; {marked}: {points}"]
    if found.hit_rate is not None:
        lines.append(f"cache hits: {found.hit_rate:.0%} of what was read in this conversation")
    if found.breaks:
        last, often = found.breaks[-1], "once" if len(found.breaks) == 1 else f"{len(found.breaks)} times"
        lines.append(f"prefix last changed: {_when(last.at)}, {last.why} ({often} in all)")
    else:
        lines.append("prefix last changed: never in this conversation")
    return lines


def _when(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


async def usage(order: Order) -> str:
    """What was used in the last 24 hours, by model, and in this conversation."""
    conversation = order.conversation
    store, key = conversation.services.store, conversation.key
    since = conversation.services.clock.now() - DAY
    rows = store.read(lambda connection: spending.spent(connection, "model", since=since))
    lines = [f"{row.name}: {row.requests} requests, {_tokens(row.usage, estimated=row.estimated > 0)}" for row in rows]
    live = store.read(lambda connection: sessions.live(connection, key))
    if live is not None:
        lines.append(f"this conversation: {_used(conversation, live.id)}")
    return "\n".join(["In the last 24 hours:", *lines]) if lines else "Nothing was used yet."


def _doing(turn: TurnRow | None) -> str:
    if turn is None:
        return "idle"
    return "waiting for your word" if turn.state == "waiting" else "working"


def _used(conversation: Talk, session: str) -> str:
    """What one conversation has used so far."""
    store = conversation.services.store
    used = store.read(lambda connection: usage_rows.of_session(connection, session))
    return _tokens(used, estimated=store.read(lambda connection: usage_rows.is_estimated(connection, session)))


def _tokens(used: Usage, *, estimated: bool) -> str:
    """`estimated`: nobody counted a part of it; then the cost has a `~` as in `limpet usage`."""
    cost = "price unknown" if used.cost is None else f"{'~' if estimated else ''}${used.cost / 1e6:.4f}"
    read = used.input + used.cache_read + used.cache_write
    return f"{read} tokens in ({used.cache_read} cached), {used.output} out, {cost}"


async def stop(order: Order) -> str:
    conversation = order.conversation
    found = await asking.stop(conversation.services, conversation.key)
    conversation.stop()
    helpers = await stop_all(conversation.services, conversation.key)
    if not found and not helpers:
        return "There is nothing to stop."
    return "Stopped." if not helpers else f"Stopped, with {helpers} helper{'s' if helpers > 1 else ''}."
