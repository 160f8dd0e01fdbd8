"""Cutting a Markdown file into passages: one for each bullet or paragraph, with its lines and its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from msgspec import Struct

from limpet.memory.dates import EPOCH

SIZE, OVERLAP = 400, 80
"""Tokens of the longest piece, and of what the next one repeats of it: four characters each, or one of Chinese,
Japanese or Korean."""
BEFORE = 400
"""Characters of the entry before that are searched with a passage."""
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_COMMENT = re.compile(r"\s*<!--(?:(?!-->).)*-->\s*", re.DOTALL)
_DAY = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?!\d)")


class Piece(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of a file; `context` is the day, the headings and the entry before."""

    text: str
    first: int
    last: int
    context: str = ""
    day: int = -1


class _Block(Struct, frozen=True):
    """Lines that belong together, from line `first`; `headings` stand above it."""

    lines: Sequence[str]
    first: int
    headings: tuple[str, ...]


def pieces(text: str, *, path: str = "") -> list[Piece]:
    """The passages of the file `path`. A day in its name, else in the nearest heading, is theirs. Comments are none."""
    found: list[Piece] = []
    before = ""
    own = _day(path)
    for block in _blocks(text.splitlines()):
        if _COMMENT.fullmatch("\n".join(block.lines)):
            continue
        day = own or next((day for one in reversed(block.headings) if (day := _day(one))), None)
        said = f"[{day:%d %B %Y}]" if day else ""
        context = "\n".join(part for part in (said, " > ".join(block.headings), before[:BEFORE]) if part)
        number = day.toordinal() - EPOCH if day else -1
        found += [
            Piece("\n".join(lines), first, first + len(lines) - 1, context, number)
            for first, lines in _cut(block.lines, block.first)
        ]
        before = "\n".join(block.lines).strip()
    return found


def _day(text: str) -> date | None:
    match = _DAY.search(text)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Paragraphs and bullets with what is indented below them; a heading alone where nothing stands under it."""
    headings: list[tuple[int, str]] = []
    block: list[str] = []
    start, fence, bare = 0, "", 0

    def done() -> Iterator[_Block]:
        while block and not block[-1].strip():
            block.pop()
        if block:
            yield _Block(tuple(block), start, tuple(text for _, text in headings))
        block.clear()

    for number, line in enumerate(lines, 1):
        heading = None if fence else _HEADING.match(line)
        if heading:
            yield from done()
            if bare and headings and len(heading[1]) <= headings[-1][0]:
                yield _Block((lines[bare - 1],), bare, tuple(text for _, text in headings[:-1]))
            level = len(heading[1])
            headings[:] = [*(one for one in headings if one[0] < level), (level, heading[2])]
            bare = number
            continue
        if not fence and ((_BULLET.match(line) and block) or (not line.strip() and not _goes_on(lines, number, block))):
            yield from done()
        if line.strip() or block:
            if not block:
                start, bare = number, 0
            block.append(line)
        if mark := _FENCE.match(line):
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]
    yield from done()
    if bare:
        yield _Block((lines[bare - 1],), bare, tuple(text for _, text in headings[:-1]))


def _goes_on(lines: Sequence[str], number: int, block: Sequence[str]) -> bool:
    """Whether the bullet `block` goes on, indented, after the blank line `number`."""
    after = lines[number] if number < len(lines) else ""
    return bool(block) and bool(_BULLET.match(block[0])) and after.startswith(("  ", "\t")) and bool(after.strip())


def parts(text: str) -> list[str]:
    """A message, cut where it is long."""
    return ["\n".join(lines) for _, lines in _cut(text.splitlines(), 1)]


def tokens(text: str) -> float:
    """By the rule of `SIZE`."""
    wide = 0 if text.isascii() else sum("\u3040" <= char <= "\ud7af" or "\uf900" <= char <= "\ufaff" for char in text)
    return wide + (len(text) - wide) / 4


def _cut(lines: Sequence[str], first: int) -> Iterator[tuple[int, list[str]]]:
    """(first line, lines) of each piece; a line that is itself too long is cut too."""
    piece: list[tuple[int, str]] = []
    fresh = False
    for number, line in enumerate(lines, first):
        for part in _parts(line):
            if piece and _size(piece) + tokens(part) > SIZE:
                if fresh:
                    yield piece[0][0], _whole(piece)
                while piece and (_size(piece) > OVERLAP or _size(piece) + tokens(part) > SIZE):
                    piece.pop(0)
            piece.append((number, part))
            fresh = True
    if piece and fresh:
        yield piece[0][0], _whole(piece)


def _size(piece: Iterable[tuple[int, str]]) -> float:
    return sum(tokens(part) for _, part in piece)


def _whole(piece: Sequence[tuple[int, str]]) -> list[str]:
    """The lines of a piece: parts of one line are put together again."""
    whole: dict[int, str] = {}
    for number, part in piece:
        whole[number] = whole.get(number, "") + part
    return list(whole.values())


def _parts(line: str) -> Iterator[str]:
    """`line` in parts of at most half a piece, cut at blanks where there are some."""
    most = max(1, round(SIZE / 2 * len(line) / max(1.0, tokens(line))))
    while len(line) > most:
        at = line.rfind(" ", most // 2, most) + 1 or most
        yield line[:at]
        line = line[at:]
    yield line
