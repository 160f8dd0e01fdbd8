"""The tree of a session: entries by parent, the leaf, and the path that leads to it."""

from __future__ import annotations

from collections.abc import Iterable

from limpet.types.entry import Compaction, Entry, Label, Leaf


def next_leaf(leaf: str, entry: Entry) -> str:
    """The leaf after `entry` was appended to a log whose leaf was `leaf`."""
    if isinstance(entry.payload, Leaf):
        return entry.payload.target
    return leaf if isinstance(entry.payload, Label) else entry.id


def path(entries: Iterable[Entry]) -> list[Entry]:
    """The entries from the root to the leaf, in that order. An entry whose parent is missing is a root."""
    log = list(entries)
    leaf = ""
    for entry in log:
        leaf = next_leaf(leaf, entry)
    return line_to(log, leaf)


def line_to(entries: Iterable[Entry], leaf: str) -> list[Entry]:
    """The entries from the root to the entry `leaf`."""
    known = {entry.id: entry for entry in entries}
    found: list[Entry] = []
    while leaf in known:
        found.append(known.pop(leaf))
        leaf = found[-1].parent
    return found[::-1]


def visible(entries: Iterable[Entry]) -> tuple[str, list[Entry]]:
    """What a model still sees of the path: the newest summary (or nothing) and the entries it does not cover.

    A compaction counts only when its first kept entry is on the path before it.
    """
    line = path(entries)
    for place in range(len(line) - 1, -1, -1):
        payload = line[place].payload
        if isinstance(payload, Compaction):
            for kept in range(place):
                if line[kept].id == payload.first_kept:
                    return payload.summary, line[kept:]
    return "", line
