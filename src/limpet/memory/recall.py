"""Recall: the few memories that go with a message, in the runtime block, before the model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from limpet.memory.dates import EPOCH
from limpet.memory.search import Result
from limpet.memory.words import indexed, terms

THRESHOLD = 0.45
"""The least share of the question that a recalled passage holds. Learned from the labelled set of `bench`
(`python -m bench recall`)."""
ITEMS, CHARACTERS = 3, 2_000
LINE = 480
"""Characters of a line of the runtime block that are certain to be shown."""
SHORTEST = 2
"""Words with a meaning of its own that a message needs: `ok` and `thanks` recall nothing."""
ABOUT = "Recalled from notes and earlier conversations; it may be outdated:"


def is_worth(message: str) -> bool:
    """Whether a message says enough to recall something for."""
    asked = [term for term in terms(message) if not term.weak]
    return len(asked) >= SHORTEST or any(len(term.text) > 3 or not term.text.isascii() for term in asked)


def lines(results: Sequence[Result], question: str) -> tuple[str, ...]:
    """The recalled passages for the runtime block, at most `ITEMS` and `CHARACTERS`; nothing of nothing."""
    found: list[str] = []
    left = CHARACTERS - len(ABOUT)
    for result in results[:ITEMS]:
        head = f"- {label(result)}: "
        line = head + excerpt(result.text, question, length=min(LINE, left) - len(head) - 4)
        if len(line) > left:
            break
        found.append(line)
        left -= len(line)
    return (ABOUT, *found) if found else ()


def label(result: Result) -> str:
    """Where a result stands, and of which day it is."""
    place = result.first.place
    day = f", {date.fromordinal(place.day + EPOCH)}" if place.day >= 0 else ""
    source = "conversation " if result.first.origin.source == "session" else ""
    return f"{source}{result.name}{day}"


def excerpt(text: str, question: str, *, length: int) -> str:
    """Up to `length` characters of `text`, those around most of the question's words."""
    flat = " ".join(text.split())
    if len(flat) <= length:
        return flat
    wanted = {word for term in terms(question) for word in term.text.split()}
    best, at = -1, 0
    for start in range(0, max(1, len(flat) - length + 1), max(1, length // 8)):
        score = len(wanted & set(indexed(flat[start : start + length]).split()))
        if score > best:
            best, at = score, start
    return f"{'… ' if at else ''}{flat[at : at + length].strip()}{' …' if at + length < len(flat) else ''}"
