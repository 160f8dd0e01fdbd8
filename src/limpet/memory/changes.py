"""What Limpet changed in memory files by itself, so that each change can be taken back; and its SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct, convert, structs

from limpet.memory.entries import BOM, eol_of, lines_of
from limpet.store.sql import Connection

KEPT = 500
"""Changes that are kept of one scope, the newest."""


class Hunk(Struct, frozen=True, omit_defaults=True):
    """Whole lines of `file` (below the workspace) that were replaced: `before` by `after`, below the lines `anchor`.

    `at` is the line (from 0) where they stood, which tells equal places apart; -1 = not known.
    """

    file: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    anchor: tuple[str, ...] = ()
    at: int = -1


class Change(Struct, frozen=True):
    """One automatic change in the memory of `scope` (its name). `source` says who made it; `at` is UTC ms."""

    id: int
    at: int
    scope: str
    source: str
    hunks: tuple[Hunk, ...]


def record(connection: Connection, hunks: Sequence[Hunk], *, scope: str, source: str, key: str, now: int) -> None:
    """Tell of a change that is about to be made. The same `key` is told once: doing it again changes nothing."""
    data = msgspec.json.encode(tuple(hunks))
    connection.execute(
        "INSERT OR IGNORE INTO memory_changes (at, scope, source, key, hunks) VALUES (?, ?, ?, ?, ?)",
        (now, scope, source, key, data),
    )
    connection.execute(
        "DELETE FROM memory_changes WHERE scope = ?1 AND id <= "
        "(SELECT id FROM memory_changes WHERE scope = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        (scope, KEPT),
    )


def newest(connection: Connection, scope: str, *, limit: int = 1, since: int = 0) -> list[Change]:
    """The newest changes that were not taken back and came after `since` (UTC ms), newest first."""
    rows = connection.execute(
        "SELECT id, at, scope, source, hunks FROM memory_changes WHERE scope = ? AND undone = 0 AND at >= ? "
        "ORDER BY id DESC LIMIT ?",
        (scope, since, limit),
    )
    return [_change(row) for row in rows]


def undo(connection: Connection, change: int) -> None:
    """From here on the change counts as taken back."""
    connection.execute("UPDATE memory_changes SET undone = 1 WHERE id = ?", (change,))


def forget(connection: Connection, scope: str, is_gone: Callable[[str], bool]) -> int:
    """Take lines that are to be forgotten out of what is kept for undo; in how many changes they stood."""
    count = 0
    rows = connection.execute("SELECT id, at, scope, source, hunks FROM memory_changes WHERE scope = ?", (scope,))
    for change in [_change(row) for row in rows]:
        left = tuple(_without(hunk, is_gone) for hunk in change.hunks)
        if left != change.hunks:
            count += 1
            data = msgspec.json.encode(left)
            connection.execute("UPDATE memory_changes SET hunks = ? WHERE id = ?", (data, change.id))
    return count


def _without(hunk: Hunk, is_gone: Callable[[str], bool]) -> Hunk:
    return structs.replace(
        hunk,
        before=tuple(line for line in hunk.before if not is_gone(line)),
        after=tuple(line for line in hunk.after if not is_gone(line)),
        anchor=tuple(line for line in hunk.anchor if not is_gone(line)),
    )


def _change(row: Sequence[object]) -> Change:
    number, at, scope, source, data = convert(row, tuple[int, int, str, str, bytes])
    return Change(number, at, scope, source, msgspec.json.decode(data, type=tuple[Hunk, ...]))


def put(text: str, hunk: Hunk) -> str:
    """`text` with the lines `before` of a hunk replaced by `after`; those that are not there any more are passed over.

    A hunk whose lines were changed meanwhile is merged line by line: what somebody else wrote stays, line ends and a
    byte order mark too.
    """
    old = lines_of(text)
    lines = list(old)
    place = _find(lines, hunk) if hunk.before else -1
    if place >= 0:
        lines[place : place + len(hunk.before)] = hunk.after
    elif not hunk.before and _stands(lines, hunk.anchor, at := _below(lines, hunk)):
        lines[at:at] = hunk.after
    else:
        kept = set(hunk.after)
        for line in hunk.before:
            if line.strip() and line in lines and line not in kept:
                place = _last(lines, line)
                del lines[place]
        fresh = [line for line in hunk.after if not line.strip() or line not in lines]
        if any(line.strip() for line in fresh):
            place = place if place >= 0 else _below(lines, hunk)
            lines[place:place] = fresh
    return ended(text, old, lines)


def ended(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    """The lines `new` as a text: those that were among the lines `old` of `text` end as they did there."""
    if not new:
        return ""
    eol = eol_of(text)
    ends = [eol] * len(new)
    if 0 < text.count("\r\n") < text.count("\n"):
        from difflib import SequenceMatcher  # only for mixed ends

        was = ["\r\n" if part.endswith("\r") else "\n" for part in text.split("\n")]
        for a, b, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
            ends[b : b + size] = was[a : a + size]
    if old and not text.endswith("\n"):
        ends[-1] = ""
    mark = BOM if text.startswith(BOM) else ""
    return mark + "".join(f"{line}{end}" for line, end in zip(new, ends, strict=True))


def reverse(hunk: Hunk) -> Hunk:
    """What takes a hunk back."""
    return structs.replace(hunk, before=hunk.after, after=hunk.before)


def left_over(text: str, hunk: Hunk) -> list[str]:
    """The lines that a hunk would take out and that are not there any more as they were."""
    lines = set(lines_of(text))
    return [line for line in hunk.before if line.strip() and line not in lines]


def _last(lines: Sequence[str], line: str) -> int:
    return len(lines) - 1 - lines[::-1].index(line)


def _below(lines: Sequence[str], hunk: Hunk) -> int:
    """The place below the anchor of a hunk; below its last line alone if need be; else the end."""
    anchor = hunk.anchor
    if not anchor:
        return 0
    for wanted in (anchor, anchor[-1:]):
        size = len(wanted)
        if any(line.strip() for line in wanted):
            places = [at for at in range(size, len(lines) + 1) if tuple(lines[at - size : at]) == wanted]
            if places:
                return _nearest(places, hunk.at)
    return len(lines)


def _nearest(places: Sequence[int], at: int) -> int:
    """The one of `places` that is nearest to `at`; the last where that is not known."""
    return min(places, key=lambda place: abs(place - at)) if at >= 0 else places[-1]


def _stands(lines: Sequence[str], anchor: tuple[str, ...], at: int) -> bool:
    """Whether all of `anchor` stands right above a place."""
    return tuple(lines[max(0, at - len(anchor)) : at]) == anchor


def _find(lines: Sequence[str], hunk: Hunk) -> int:
    """Where the lines that a hunk replaces stand as a whole, of several places the one below its anchor; -1 when they
    do not."""
    size, below = len(hunk.before), hunk.anchor
    places = [at for at in range(len(lines) - size + 1) if tuple(lines[at : at + size]) == hunk.before]
    right = [at for at in places if _stands(lines, below, at) and (below or not at)]
    return _nearest(right or places, hunk.at) if places else -1
