"""What file tools may make of memory files: add to them, change them, but not lose them (DESIGN 13)."""

from __future__ import annotations

import re
from collections import Counter

from limpet.errors import ToolError
from limpet.memory.book import Book
from limpet.memory.changes import ended
from limpet.memory.entries import entries_of, eol_of, lines_of, lost, normal, too_many

_GROWS = re.compile(r"(?:.*/)?(?:\d{4}-\d\d-\d\d[^/]*|HISTORY)\.md")
"""Files of what happened: they only grow."""
NAMED = 5
HINT = "Add lines, or change a few. To forget something the owner says: limpet memory forget."


def is_memory(file: str) -> bool:
    """Whether a path below the workspace is a memory file, in whatever case."""
    name = file.casefold()
    return name == "memory.md" or name.startswith("memory/")


def judged(book: Book, file: str, *, before: bytes, after: bytes | None) -> bytes | None:
    """What is to stand in the memory `file` instead of `after` (None: it is deleted).

    Entries that are new and stand there twice, or stand in another file of what lasts, are left out; a file of what
    happened keeps the entries that `after` lacks. A folder ends in `/`. Other files are left alone.
    Raises `ToolError` for what would lose over a quarter of the entries.
    """
    if not is_memory(file):
        return after
    if file.endswith("/"):
        raise ToolError(f"{file} is a folder of memory; nothing was changed", hint=HINT)
    old = before.decode("utf-8", "surrogateescape")
    new = "" if after is None else _without_doubles(book, file, old=old, new=after.decode("utf-8", "surrogateescape"))
    gone = lost(old, new)
    if after is not None and gone and _GROWS.fullmatch(file):
        new = _joined(old, new)
        gone = []
    count = len(entries_of(old, file))
    if too_many(len(gone), count):
        names = "".join(f"\n- {' '.join(one.text.split())[:80]}" for one in gone[:NAMED])
        raise ToolError(
            f"{file} is memory: this would lose {len(gone)} of its {count} entries, over a quarter; nothing was "
            f"changed.{names}",
            hint=HINT,
        )
    return None if after is None else new.encode("utf-8", "surrogateescape")


def _without_doubles(book: Book, file: str, *, old: str, new: str) -> str:
    """`new` without those of its entries that are not in `old` and are said already, there or where else it lasts."""
    if _GROWS.fullmatch(file):
        others: set[str] = set()
    else:
        lasting = [one for one in book.scope.lasting if one.casefold() != file.casefold()]
        others = {normal(entry.text) for one in lasting for entry in entries_of(book.read(one), one)}
    known = Counter(normal(one.text) for one in entries_of(old, ""))
    seen = Counter[str]()
    lines: list[str | None] = [*lines_of(new)]
    for one in entries_of(new, ""):
        words = normal(one.text)
        if words and (seen[words] >= max(1, known[words]) or (not known[words] and words in others)):
            lines[one.start : one.end] = [None] * (one.end - one.start)
        seen[words] += 1
    if None not in lines:
        return new
    return ended(new, lines_of(new), [line for line in lines if line is not None])


def _joined(old: str, new: str) -> str:
    """`old` with the entries that only `new` has below it."""
    known = {normal(one.text) for one in entries_of(old, "")}
    lines = lines_of(new)
    fresh = [
        line for one in entries_of(new, "") if normal(one.text) not in known for line in lines[one.start : one.end]
    ]
    eol = eol_of(old)
    end = "" if not old or old.endswith("\n") else eol
    return old + end + "".join(f"{line}{eol}" for line in fresh)
