"""Commands that only look, and `/stop`: they need no lease and are answered at once."""

from __future__ import annotations

from limpet.assistant.orders import Order, Talk
from limpet.assistant.services import Keeping
from limpet.llm.tokens import estimate
from limpet.session.export import plain
from limpet.store import entries, sessions, spending, turns
from limpet.store import usage as used
from limpet.types.entry import PromptEntry
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
    spent = services.store.read(lambda connection: used.of_session(connection, live.id))
    count = services.store.read(lambda connection: entries.last_seq(connection, live.id))
    return "\n".join(
        [
            *lines,
            f"id: {live.id}",
            f"entries: {count}",
            f"turn: {'working' if turn else 'idle'}",
            f"used: {_tokens(spent)}",
            f"kept: {_kept(services.keeping)}",
        ]
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
    """The sections of the next request with their estimated tokens, as a table in plain text."""
    model = await conversation.services.models.get(conversation.model_reference())
    profile = model.profile
    log = conversation.log()
    prompt = await current_prompt(conversation)
    rows = [(section.name, estimate(section.text)) for section in prompt.sections]
    tools = sum(estimate(f"{tool.name} {tool.description} {bytes(tool.parameters).decode()}") for tool in prompt.tools)
    said = sum(estimate(plain(message)) for message in log.messages())
    rows += [(f"tools ({len(prompt.tools)})", tools), ("messages", said)]
    rows = [(name, round(tokens * profile.token_factor)) for name, tokens in rows]
    total = sum(tokens for _, tokens in rows)
    window = f" of {profile.window}" if profile.window else ""
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {tokens:>7}" for name, tokens in rows]
    made = f"snapshot: {prompt.tier}, {prompt.reason}"
    return "\n".join([*lines, f"{'total':<{width}}  {total:>7}{window} tokens (estimated)", made])


async def current_prompt(conversation: Talk) -> PromptEntry:
    """The snapshot that the next request uses, or would use if it were the first."""
    model = await conversation.services.models.get(conversation.model_reference())
    prompt = conversation.log().prompt
    return prompt or conversation.services.prompting.snapshot(model.profile, reason="preview")


async def usage(order: Order) -> str:
    """What was used in the last 24 hours, by model, and in this conversation."""
    conversation = order.conversation
    store, key = conversation.services.store, conversation.key
    since = conversation.services.clock.now() - DAY
    rows = store.read(lambda connection: spending.spent(connection, "model", since=since))
    lines = [f"{row.name}: {row.requests} requests, {_tokens(row.usage)}" for row in rows]
    live = store.read(lambda connection: sessions.live(connection, key))
    if live is not None:
        here = store.read(lambda connection: used.of_session(connection, live.id))
        lines.append(f"this conversation: {_tokens(here)}")
    return "\n".join(["In the last 24 hours:", *lines]) if lines else "Nothing was used yet."


def _tokens(used: Usage) -> str:
    cost = "price unknown" if used.cost is None else f"${used.cost / 1e6:.4f}"
    read = used.input + used.cache_read + used.cache_write
    return f"{read} tokens in ({used.cache_read} cached), {used.output} out, {cost}"


async def stop(order: Order) -> str:
    conversation = order.conversation
    key = conversation.key
    found = await conversation.services.store.write(lambda connection: turns.request_stop(connection, key))
    conversation.stop()
    conversation.services.nudges.send()
    return "Stopped." if found else "There is nothing to stop."
