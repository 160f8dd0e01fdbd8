"""What is kept of an ended conversation in the workspace: its last messages, as people saw them."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.session.export import markdown
from limpet.types.entry import AssistantEntry, Entry, UserEntry

MESSAGES = 15
"""Messages of people and of the agent that an excerpt has (OpenClaw's number)."""


def last_messages(entries: Sequence[Entry]) -> list[Entry]:
    """The newest messages of people, and answers with words."""
    said = [entry for entry in entries if _has_words(entry)]
    return said[-MESSAGES:]


def excerpt(entries: Sequence[Entry], *, title: str) -> str:
    """The last messages as Markdown; empty when nothing was said."""
    said = last_messages(entries)
    return f"# {title}\n\n{markdown(said)}" if said else ""


def _has_words(entry: Entry) -> bool:
    match entry.payload:
        case UserEntry():
            return True
        case AssistantEntry(message=message):
            return bool(message.text.strip())
        case _:
            return False
