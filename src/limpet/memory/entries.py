"""Entries of memory files: what one says, when it was written, out of what, and how far it is trusted.

An entry is a list item with its continuation lines, or a paragraph. What Limpet writes ends in a comment that Markdown
does not show: `- Likes tea <!-- 2026-11-30 14:02 said -->`. What has none is the owner's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from limpet.types.envelope import Trust

BOM = "\ufeff"
"""Before the text of a file of some editors; it stays there."""
ID = 6
"""Characters of an id. It follows from the words of an entry, so it outlives moves and other editors."""
_LEAD = re.compile(r"^\s*(?:(?:[-*+]|\d+[.)])\s+)?(?:\d\d:\d\d\s+)?")
_ITEM = re.compile(r"^(?:[-*+]|\d+[.)])\s")
_MARK = re.compile(r"\s*<!-- (\d{4}-\d\d-\d\d \d\d:\d\d) ([^;<>]+?)(?:; (owner|peer|tool|external))? -->\s*$")


class Remembered(Struct, frozen=True):
    """One entry: its lines `start` to `end` (from 0, the last excluded) of `file`, and its words without all marks.

    `at` is the owner's time, empty where none is told; `source` is `said`, `noted`, a session, `notes of DAY`, or empty
    for the owner's own words.
    """

    file: str
    start: int
    end: int
    text: str
    heading: str = ""
    at: str = ""
    source: str = ""
    trust: Trust = "owner"

    @property
    def id(self) -> str:
        return id_of(self.text)


def normal(line: str) -> str:
    """The words of a line by which it is the same as another: case, blanks, list marks, times, marks do not count."""
    return " ".join(_LEAD.sub("", _MARK.sub("", line)).casefold().split())


def unmarked(text: str) -> tuple[str, str, Trust]:
    """An entry's words as they stand, without its mark; the day it was written (empty: unknown), and its trust."""
    mark = _MARK.search(text)
    return _MARK.sub("", text), mark[1][:10] if mark else "", _trust((mark[3] if mark else "") or "owner")


def id_of(text: str) -> str:
    return hashlib.sha256(normal(text).encode("utf-8", "replace")).hexdigest()[:ID]


def one_line(text: str) -> str:
    """`text` as the words of an entry: one line, in which nothing can pass for a mark of ours."""
    flat = " ".join(text.split())
    return flat.replace("<!--", "< !--").replace("-->", "-- >")


def marked(text: str, *, at: str, source: str, trust: Trust = "owner") -> str:
    """The line of an entry. `at` is `YYYY-MM-DD HH:MM`; only a trust below the owner's is written."""
    return f"- {one_line(text)} <!-- {at} {source}{'' if trust == 'owner' else f'; {trust}'} -->"


def lines_of(text: str) -> list[str]:
    """The lines of a text, as editors count them, without their ends and without a byte order mark."""
    lines = text.removeprefix(BOM).replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def eol_of(text: str) -> str:
    """How most lines of a text end."""
    return "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"


def entries_of(text: str, file: str) -> list[Remembered]:
    """The entries of a memory file, in order. Headings, comments and rules are none."""
    lines = lines_of(text)
    found: list[Remembered] = []
    heading = ""
    for start, end in _blocks(lines):
        first = lines[start].strip()
        if first.startswith("#"):
            heading = first.lstrip("#").strip()
        elif not first.startswith("<!--") and first.strip("-*_ "):
            found.append(_entry(lines[start:end], file, start, heading=heading))
    return found


def _entry(lines: Sequence[str], file: str, start: int, *, heading: str) -> Remembered:
    whole = "\n".join(lines)
    mark = _MARK.search(whole)
    text = "\n".join(line.strip() for line in _LEAD.sub("", _MARK.sub("", whole), count=1).splitlines())
    at, source, trust = (mark[1], mark[2], mark[3]) if mark else ("", "", "owner")
    return Remembered(file, start, start + len(lines), text, heading, at, source, _trust(trust or "owner"))


def _trust(word: str) -> Trust:
    match word:
        case "peer" | "tool" | "external":
            return word
        case _:
            return "owner"


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs of lines that belong together: a heading, a list item with what is indented below it, a paragraph."""
    start, fenced = -1, False
    last = max((number for number, line in enumerate(lines) if line.strip().startswith("```")), default=-1)
    for number, line in enumerate(lines):
        bare = line.strip()
        alone = bare.startswith("#") or _ITEM.match(line)
        if not fenced and start >= 0 and (not bare or alone or lines[start].lstrip().startswith("#")):
            yield start, number
            start = -1
        if bare.startswith("```"):
            fenced = not fenced and number < last  # a fence that nothing closes is a line like others
        if start < 0 and bare:
            start = number
    if start >= 0:
        yield start, len(lines)


def named(entries: Iterable[Remembered], word: str) -> list[Remembered]:
    """Those that `word` means: by id (its beginning, of three characters or more), else by their words."""
    known = list(entries)
    wanted = normal(word)
    if not wanted:
        return []
    exact = [one for one in known if normal(one.text) == wanted]
    ids = [one for one in known if len(wanted) >= 3 and one.id.startswith(wanted)]
    return exact or list(dict.fromkeys([*ids, *(one for one in known if wanted in normal(one.text))]))


def lost(before: str, after: str) -> list[Remembered]:
    """The entries of `before` that `after` has no more, neither as they were nor in words much like them."""
    held = {normal(one.text) for one in entries_of(after, "")}
    old = entries_of(before, "")
    fresh = [set(words.split()) for words in held - {normal(one.text) for one in old}]
    return [one for one in old if (words := normal(one.text)) not in held and not _like(set(words.split()), fresh)]


def _like(words: set[str], others: Iterable[set[str]]) -> bool:
    """Whether half of the words stand in one of the `others`, and half of those are these."""
    return any(2 * len(words & other) >= max(len(words), len(other)) for other in others if other)


def too_many(gone: int, of: int) -> bool:
    """Whether a rewrite loses too much: over a quarter, though one of several may always go (DESIGN 13)."""
    return 4 * gone > of and (gone > 1 or of < 2)
