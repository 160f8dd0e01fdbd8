"""The patch text of `apply_patch`: reading it, and finding its hunks in a file.

*** Begin Patch
*** Add File: PATH           then lines, each with + before it
*** Delete File: PATH
*** Update File: PATH        then, if it moves, *** Move to: PATH
@@ a line above the hunk     (may be left out; several lead deeper; numbers as in a unified diff are ignored)
 a line that stays
-a line that goes
+a line that comes
*** End of File              the hunk ends where the file ends
*** End Patch
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from limpet.errors import ToolError
from limpet.tools.edits import Change, Flat, nearest, spans, splice

_BEGIN, _END, _LAST = "*** Begin Patch", "*** End Patch", "*** End of File"
_SECTION = re.compile(r"\*\*\* (Add|Delete|Update) File: ?(.+)")
_MOVE = re.compile(r"\*\*\* Move to: ?(.+)")
_NUMBERS = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")

Line = tuple[Literal[" ", "-", "+"], str]


class Hunk(Struct, frozen=True):
    """Lines that stay, go and come; `above` are lines that stand before it, `last`: it ends with the file."""

    lines: tuple[Line, ...]
    above: tuple[str, ...] = ()
    last: bool = False


class Section(Struct, frozen=True):
    """What happens to one file. `content` is that of an added one; a moved one goes `to` another path."""

    kind: Literal["add", "delete", "update"]
    path: str
    to: str = ""
    content: str = ""
    hunks: tuple[Hunk, ...] = ()


def paths_in(text: str) -> tuple[str, ...]:
    """Every path that a patch names, also in one that cannot be read."""
    found = (match for line in _lines(text) for match in (_SECTION.match(line.strip()), _MOVE.match(line.strip())))
    return tuple(match.group(match.lastindex or 0).strip() for match in found if match)


def parse(text: str) -> list[Section]:
    """The sections of a patch, one for each file. Raises `ToolError` naming the line that has no meaning."""
    lines = _lines(text)
    if lines[0].strip() != _BEGIN or lines[-1].strip() != _END or len(lines) < 2:
        raise ToolError(f"the patch has to begin with {_BEGIN!r} and end with {_END!r}; nothing was changed")
    reader = _Reader(lines[:-1])
    sections: dict[str, Section] = {}
    while (line := reader.next()) is not None:
        if not line.strip():
            continue
        match = _SECTION.match(line.strip())
        if match is None:
            raise reader.fault("expected *** Add File:, *** Update File: or *** Delete File:")
        section = _section(reader, match[1], match[2].strip())
        known = sections.get(section.path)
        if known is not None:
            if {known.kind, section.kind} != {"update"} or section.to:
                raise ToolError(f"{section.path} is named twice in the patch; nothing was changed")
            section = structs.replace(known, hunks=(*known.hunks, *section.hunks))
        sections[section.path] = section
    if not sections:
        raise ToolError("the patch names no file; nothing was changed")
    return list(sections.values())


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").strip("\n").split("\n")


class _Reader:
    """The lines of a patch, one after the other; the first has been read."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._place = 0

    def next(self) -> str | None:
        self._place += 1
        return self._lines[self._place] if self._place < len(self._lines) else None

    def body(self) -> Iterator[str]:
        """The lines up to the next section."""
        while self._place + 1 < len(self._lines) and not _SECTION.match(self._lines[self._place + 1]):
            self._place += 1
            yield self._lines[self._place]

    def fault(self, what: str) -> ToolError:
        line = self._lines[self._place] if self._place < len(self._lines) else ""
        return ToolError(f"line {self._place + 1} of the patch: {what}, got {line[:80]!r}; nothing was changed")


def _section(reader: _Reader, kind: str, path: str) -> Section:
    if kind == "Delete":
        for line in reader.body():
            if line.strip():
                raise reader.fault("nothing follows *** Delete File:")
        return Section("delete", path)
    if kind == "Add":
        return Section("add", path, content="".join(f"{line}\n" for line in _added(reader)))
    return _update(reader, path)


def _added(reader: _Reader) -> Iterator[str]:
    for line in reader.body():
        if not line.startswith("+"):
            raise reader.fault("each line of an added file begins with +")
        yield line[1:]


def _update(reader: _Reader, path: str) -> Section:
    to = ""
    hunks: list[Hunk] = []
    lines: list[Line] = []
    above: list[str] = []

    def close(*, last: bool = False) -> None:
        if lines:
            hunks.append(Hunk(tuple(lines), tuple(above), last))
            above.clear()
        lines.clear()

    for line in reader.body():
        move = _MOVE.match(line.strip())
        if move and not hunks and not lines:
            to = move[1].strip()
        elif line.strip() == _LAST:
            close(last=True)
        elif line.startswith("@@"):
            close()
            named = _NUMBERS.sub("@@ ", line)[2:].strip()
            above += [named] if named else []
        elif line[:1] in ("-", "+", " ", ""):
            mark: Literal[" ", "-", "+"] = "-" if line[:1] == "-" else "+" if line[:1] == "+" else " "
            lines.append((mark, line[1:]))
        else:
            raise reader.fault("a line of a hunk begins with a space, - or +")
    while lines and lines[-1] == (" ", "") and len(lines) > 1:  # blank lines before the next section are no context
        lines.pop()
    close()
    if not hunks and not to:
        raise ToolError(f"{path}: *** Update File: without a hunk; nothing was changed")
    return Section("update", path, to=to, hunks=tuple(hunks))


def patched(original: str, section: Section) -> str:
    """The text after all hunks of a section. Raises `ToolError` naming file and hunk, with the nearest region."""
    flat = Flat(original)
    changes: list[Change] = []
    place = 0
    for number, hunk in enumerate(section.hunks, 1):
        try:
            start, end = _find(flat, hunk, place)
        except ToolError as error:
            raise ToolError(f"{section.path}, hunk {number}: {error}", hint=error.hint) from None
        changes += _joined(_changes(flat, hunk, start, end, number=number))
        place = max(place, end)
    return splice(flat, changes, what=f"{section.path}: hunks")


def _find(flat: Flat, hunk: Hunk, place: int) -> tuple[int, int]:
    """Where the lines of a hunk that are there already stand; from `place` on, else anywhere."""
    text = flat.text
    for named in hunk.above:
        place = _line_after(text, named, place)
    old = "\n".join(line for mark, line in hunk.lines if mark != "+")
    if all(mark == "+" for mark, _ in hunk.lines):
        return (place, place) if hunk.above else (len(text), len(text))
    lines = f"\n{text}" if text.endswith("\n") else f"\n{text}\n"
    found = [(start, end - 2) for start, end in spans(lines, f"\n{old}\n")]  # whole lines only
    if hunk.last:
        found = [span for span in found if text[span[1] :] in ("", "\n")]
    later = [span for span in found if span[0] >= place]
    if not found or (hunk.above and not later):
        raise ToolError(f"its lines were not found; nothing was changed.{nearest(text, old)}")
    found = later or found
    if len(found) > 1 and not hunk.above:
        places = ", ".join(str(flat.line(start)) for start, _ in found[:10])
        raise ToolError(
            f"its lines stand at {len(found)} places (lines {places}); nothing was changed",
            hint="Include more of the lines around it, or name a line above it after @@.",
        )
    return found[0]


def _line_after(text: str, named: str, place: int) -> int:
    """Where the line after the first one that reads `named`, from `place` on, begins."""
    for start, line in _lines_from(text, place):
        if line.strip() == named:
            return min(start + len(line) + 1, len(text))
    raise ToolError(f"the line {named[:200]!r} after @@ was not found; nothing was changed.{nearest(text, named)}")


def _lines_from(text: str, place: int) -> Iterator[tuple[int, str]]:
    for line in text[place:].split("\n"):
        yield place, line
        place += len(line) + 1


class _Run(NamedTuple):
    """Lines next to each other that go and come, before the `first` of the hunk's old lines that follows them."""

    first: int
    gone: int
    added: list[str]


def _changes(flat: Flat, hunk: Hunk, start: int, end: int, *, number: int) -> Iterator[Change]:
    """What a hunk changes of the lines from `start` to `end`: only those that go and come."""
    text = flat.text
    runs = list(_runs(hunk))
    if start == end and all(mark == "+" for mark, _ in hunk.lines):
        joined = "\n".join(runs[0].added)
        unended = start == len(text) and text and not text.endswith("\n")
        yield Change(start, start, f"\n{joined}" if unended else f"{joined}\n", number)
        return
    begins = [place for place, _ in _lines_from(text[:end], start)]
    for first, gone, added in runs:
        joined = "\n".join(added)
        if not gone and first < len(begins):
            yield Change(begins[first], begins[first], f"{joined}\n", number)
        elif not gone:
            yield Change(end, end, f"\n{joined}", number)
        else:
            stop = begins[first + gone] - 1 if first + gone < len(begins) else end
            yield _replaced(text, begins[first], stop, added, number=number)


def _joined(changes: Iterable[Change]) -> list[Change]:
    """Changes at one place as one: what comes before an empty line and what comes after it at the end of a file."""
    found: list[Change] = []
    for change in changes:
        if found and found[-1].start == found[-1].end == change.start:
            before = found.pop()
            change = structs.replace(change, new=before.new + change.new)
        found.append(change)
    return found


def _replaced(text: str, start: int, stop: int, added: list[str], *, number: int) -> Change:
    """Lines replaced by others, or gone together with a line end."""
    if added:
        return Change(start, stop, "\n".join(added), number)
    if stop < len(text):
        return Change(start, stop + 1, "", number)
    return Change(max(start - 1, 0), stop, "", number)


def _runs(hunk: Hunk) -> Iterator[_Run]:
    first, gone = 0, 0
    added: list[str] = []
    for mark, line in (*hunk.lines, (" ", "")):
        if mark == "-":
            gone += 1
        elif mark == "+":
            added.append(line)
        else:
            if gone or added:
                yield _Run(first, gone, added)
            first, gone, added = first + gone + 1, 0, []
