"""How a conversation stands, in one line: its model, what fills the window, what it has cost."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.assistant.conversation import Conversation
from limpet.session import keys
from limpet.store import sessions
from limpet.store import usage as usage_rows
from limpet.store.sql import Connection
from limpet.types.entry import AssistantEntry, Entry
from limpet.types.usage import NO_USAGE, Usage


async def standing(conversation: Conversation) -> str:
    """Raises `NoModelError`, `ConfigError` when the model cannot be had any more."""
    services = conversation.services
    profile = (await services.models.get(conversation.model_reference())).profile
    parts = [keys.name_of(conversation.key), profile.reference]
    last = _last_used(conversation.log().entries)
    if last.total and profile.window:
        parts.append(f"context {_short(last.total)} of {_short(profile.window)} ({last.total / profile.window:.0%})")

    def spent(connection: Connection) -> Usage:
        live = sessions.live(connection, conversation.key)
        return usage_rows.of_session(connection, live.id) if live else NO_USAGE

    used = services.store.read(spent)
    if used.cost is not None:
        parts.append(f"${used.cost / 1e6:.4f}")
    elif used.total:
        parts.append(f"{_short(used.total)} tokens")
    return " · ".join(parts)


def _last_used(entries: Sequence[Entry]) -> Usage:
    """What the newest answer has used: what it read and wrote fills the window now."""
    for entry in reversed(entries):
        if isinstance(entry.payload, AssistantEntry) and entry.payload.message.usage.total:
            return entry.payload.message.usage
    return NO_USAGE


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.1f}k" if tokens >= 1000 else str(tokens)
