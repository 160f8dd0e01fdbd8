"""Blocks: the finished pieces of an answer that grows, for platforms where messages cannot be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

LEAST = 200
"""Characters of a block of an answer: shorter paragraphs wait for the next one."""

_FENCE = re.compile(r"[ \t>*+\-\d.]*?(`{3,}|~{3,})(.*)$")
_CUTS = (re.compile(r"\n"), re.compile(r"[.!?\u2026]\s|[\u3002\uff01\uff1f]"), re.compile(r"\s"))


def blocks(text: str, done: bool, *, start: int = 0, limit: int = 4_000) -> tuple[str, ...]:
    """The next blocks of an answer that grows, from the character `start` on, whole when `done`.

    Joined, they are what `text` holds from `start` on as far as it can be sent already: continue behind it. A block
    ends with a paragraph and has at least `LEAST` characters; one of more than `limit` is cut at a line, a sentence
    or a word. Code between fences stays whole, however long: `render` cuts it, with fences of its own.
    """
    found: list[str] = []
    while (end := _end(text, start, limit, done=done)) > start:
        found.append(text[start:end])
        start = end
    return tuple(found)


def _end(text: str, start: int, limit: int, *, done: bool) -> int:
    """Where the block that begins at `start` ends; `start` when that is not known yet."""
    end = start
    for unit in _units(text, start):
        if end > start and unit.end - start > limit:
            return end
        if unit.end - start > limit and not unit.fenced:
            return _cut(text, start, start + limit)
        if not unit.whole:
            break
        end = unit.end
        if end - start >= LEAST:
            return end
    return len(text) if done else start


class _Unit(Struct, frozen=True):
    """A paragraph with the blank lines behind it, or fenced code. `whole`: its end has come."""

    end: int
    fenced: bool
    whole: bool


def _units(text: str, start: int) -> Iterator[_Unit]:
    fence = ""
    begin = place = start
    while place < len(text):
        stop = text.find("\n", place) + 1
        line = text[place : stop or len(text)].rstrip()
        before, fence = fence, _fence(fence, line)
        if fence and not before and place > begin:
            yield _Unit(place, False, True)
            begin = place
        place = stop or len(text)
        ended = stop > 0 and ((before and not fence) or not (fence or line))
        if ended:
            yield _Unit(place, bool(before), True)
            begin = place
    if begin < len(text):
        yield _Unit(len(text), bool(fence), False)


def _fence(fence: str, line: str) -> str:
    """The fence that is open after `line`, when `fence` was before it; empty outside of code."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    return "" if found[1].startswith(fence) and not found[2].strip() else fence


def _cut(text: str, start: int, end: int) -> int:
    """A good place in the second half of `start` to `end`; `end` when there is none."""
    middle = (start + end) // 2
    for kind in _CUTS:
        places = [found.end() for found in kind.finditer(text, middle, end)]
        if places:
            return places[-1]
    return end
