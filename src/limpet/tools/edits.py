"""Replacing parts of a text: exact first, then as people would read it; nothing else is touched.

Offsets are in the text with `\\n` line ends ("flat"); `Flat` maps them back to the file as it is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct

from limpet.errors import ToolError

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_LINE_END = re.compile(r"\r?\n")
_SEARCHED = 5_000
"""Lines looked at for the nearest region of a text that was not found."""
_SHOWN = 12


class Edit(Struct, frozen=True):
    """Put `new` where `old` stands."""

    old: str
    new: str
    replace_all: bool = False


class Change(Struct, frozen=True):
    """A decided replacement: flat offsets, the new text with `\\n` line ends, which edit wanted it."""

    start: int
    end: int
    new: str
    number: int


class Flat:
    """A text with its line ends made alike, that remembers each one."""

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original.replace("\r\n", "\n")
        self._returns: list[int] = []  # flat offsets of the line ends that were \r\n
        place = -1
        while (place := original.find("\r\n", place + 1)) >= 0:
            self._returns.append(place - len(self._returns))
        self._set = frozenset(self._returns)

    def back(self, place: int) -> int:
        """The offset in the original of a flat offset."""
        return place + bisect_left(self._returns, place)

    def line(self, place: int) -> int:
        """The line (from 1) of a flat offset."""
        return self.text.count("\n", 0, place) + 1

    def restore(self, change: Change) -> str:
        """The new text of `change` with the line ends that belong there: those it replaces, else its line's."""
        own = [m.start() for m in re.finditer("\n", self.text[change.start : change.end])]
        kinds = [self._end_at(change.start + place) for place in own] or [self._near(change.start)]
        pieces = change.new.split("\n")
        ends = [kinds[min(index, len(kinds) - 1)] for index in range(len(pieces) - 1)]
        return "".join(piece + end for piece, end in zip(pieces, [*ends, ""], strict=True))

    def _end_at(self, place: int) -> str:
        return "\r\n" if place in self._set else "\n"

    def _near(self, place: int) -> str:
        """The line end of the line at `place`; on a last line without one that of the line before."""
        end = self.text.find("\n", place)
        if end < 0:
            end = self.text.rfind("\n", 0, place)
        return self._end_at(end) if end >= 0 else "\n"


def apply(original: str, edits: list[Edit]) -> tuple[str, list[int]]:
    """The text after all `edits`, each matched against `original`, and the lines (from 1) where they took hold.

    Raises `ToolError` when one does not match exactly once (or at all, with `replace_all`), or two overlap.
    """
    flat = Flat(original)
    changes: list[Change] = []
    for number, edit in enumerate(edits, 1):
        changes += _find(flat, edit, number=number, many=len(edits) > 1)
    result = splice(flat, changes, what="edits")
    if result == original:
        raise ToolError("nothing would change: the new text is what stands there already")
    return result, sorted(flat.line(change.start) for change in changes)


def splice(flat: Flat, changes: list[Change], *, what: str) -> str:
    """The original with `changes` in it, all else as it is. Raises `ToolError` when two (of `what`) overlap."""
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    for first, second in pairwise(ordered):
        if second.start < first.end or second.start == first.start:
            raise ToolError(
                f"{what} {first.number} and {second.number} overlap at line {flat.line(second.start)}",
                hint="Nothing was changed. Join them into one.",
            )
    pieces: list[str] = []
    place = 0
    for change in ordered:
        pieces += [flat.original[place : flat.back(change.start)], flat.restore(change)]
        place = flat.back(change.end)
    return "".join(pieces) + flat.original[place:]


def spans(text: str, wanted: str) -> list[tuple[int, int]]:
    """Where `wanted` stands in `text`: exactly, or else when quotes, dashes, width and ends of lines do not matter."""
    exact = [(place, place + len(wanted)) for place in _occurrences(text, wanted)]
    return exact or list(_alike(text, wanted))


def _find(flat: Flat, edit: Edit, *, number: int, many: bool) -> list[Change]:
    which = f"edit {number}: " if many else ""
    old, new = edit.old.replace("\r\n", "\n"), edit.new.replace("\r\n", "\n")
    if not old:
        raise ToolError(f"{which}old is empty", hint="Give the text to replace; write_file creates a file.")
    changes = [Change(place, place + len(old), new, number) for place in _occurrences(flat.text, old)]
    if not changes:
        spans = list(_alike(flat.text, old))
        changes = [Change(s, e, _keep_untouched(flat.text[s:e], old, new), number) for s, e in spans]
    if not changes:
        raise ToolError(f"{which}old was not found; nothing was changed.{nearest(flat.text, old)}")
    if len(changes) > 1 and not edit.replace_all:
        lines = ", ".join(str(flat.line(change.start)) for change in changes[:10])
        raise ToolError(
            f"{which}old occurs {len(changes)} times (lines {lines}); nothing was changed",
            hint="Include more of the lines around it, or set replace_all.",
        )
    return changes


def _occurrences(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + len(part))


def _alike(text: str, old: str) -> Iterator[tuple[int, int]]:
    """Where `old` stands in `text` when quotes, dashes, width and spaces at line ends do not matter."""
    plain, starts, ends = _plain(text)
    wanted = _plain(old)[0]
    if not wanted.strip():
        return
    for place in _occurrences(plain, wanted):
        last = place + len(wanted) - 1
        begins_whole = place == 0 or starts[place] != starts[place - 1]
        ends_whole = last + 1 == len(plain) or ends[last] != ends[last + 1]
        if begins_whole and ends_whole:
            yield starts[place], ends[last]


def _plain(text: str) -> tuple[str, list[int], list[int]]:
    """`text` in its compared form, and where each of its characters begins and ends in `text`."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    place = 0
    for line in text.split("\n"):
        body = line.rstrip()
        index = 0
        while index < len(body):
            stop = index + 1
            while stop < len(body) and unicodedata.combining(body[stop]):
                stop += 1
            for char in unicodedata.normalize("NFKC", body[index:stop]).translate(_ALIKE):
                out.append(char)
                starts.append(place + index)
                ends.append(place + stop)
            index = stop
        place += len(line)
        out.append("\n")
        starts.append(place)
        ends.append(place + 1)
        place += 1
    return "".join(out[:-1]), starts[:-1], ends[:-1]


def _keep_untouched(there: str, old: str, new: str) -> str:
    """`new`, but with the lines that `old` and `new` share as they stand `there`."""
    there_lines, old_lines, new_lines = there.split("\n"), old.split("\n"), new.split("\n")
    if len(there_lines) != len(old_lines):
        return new
    result: list[str] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_opcodes():
        result += there_lines[i1:i2] if kind == "equal" else new_lines[j1:j2]
    return "\n".join(result)


def nearest(text: str, old: str) -> str:
    """The region of `text` most like `old`, with its line numbers, as the end of an error message."""
    lines, wanted = text.split("\n")[:_SEARCHED], old.strip("\n").split("\n")
    key = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[key].strip()[:500])
    best, where = 0.5, -1
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, where = ratio, index
    if where < 0:
        return " Nothing in the file is like it: read it again."
    first = max(where - key, 0)
    region = lines[first : first + min(len(wanted), _SHOWN)]
    shown = "\n".join(line[:300] for line in region)
    return f" The nearest is at lines {first + 1}-{first + len(region)}:\n{shown}"
