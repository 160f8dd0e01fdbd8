"""The memory of one scope as files: its entries, and changes to them that leave alone what others wrote."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from limpet.errors import WorkspaceError
from limpet.memory.changes import Hunk, put
from limpet.memory.daily import READ_LIMIT, rewrite
from limpet.memory.entries import Remembered, entries_of, lines_of, marked, normal
from limpet.memory.files import files_of, is_record
from limpet.memory.scope import MemoryScope, is_pending

_DAY = re.compile(r"\d{4}-\d\d-\d\d\.md")
MOSTLY = 0.5
"""Share of a text that words have to be for it to be forgotten with them."""
LONGEST = 2_000
"""Characters of one entry."""
LISTED = 5
"""Entries that are named as what could go."""


class Book:
    """The files of `scope` below the absolute path `workspace`."""

    def __init__(self, workspace: str, scope: MemoryScope) -> None:
        self.workspace = workspace
        self.scope = scope

    def read(self, file: str) -> str:
        """The text of a file below the workspace; empty for what is no ordinary file in it."""
        path = os.path.join(self.workspace, file)
        try:
            if os.path.realpath(path) != os.path.join(os.path.realpath(self.workspace), file):
                return ""
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(handle, "rb") as opened:
                return opened.read(READ_LIMIT).decode("utf-8", "surrogateescape")
        except OSError:
            return ""

    def days(self) -> list[str]:
        """The files of day notes, oldest first."""
        folder = f"{self.scope.folder}/"
        return [file for file in self.everything() if _DAY.fullmatch(file.removeprefix(folder))]

    def records(self) -> list[str]:
        """The files that tell what was said, without entries of their own: HISTORY.md, the ends of conversations."""
        return [file for file in self.everything() if is_record(file)]

    def entries(self) -> list[Remembered]:
        """Of what lasts, of other files, then of the days."""
        lasting, days = [*self._lasting()], self.days()
        known = {*self.scope.lasting, *days}
        others = [file for file in self.everything() if file not in known and not is_record(file)]
        own = (*lasting, *(file for file in others if not is_pending(file)), *days)
        return [one for file in own for one in entries_of(self.read(file), file)]

    def waiting(self) -> list[Remembered]:
        """What waits for the owner's word."""
        files = [file for file in self.everything() if is_pending(file) and not is_record(file)]
        return [one for file in files for one in entries_of(self.read(file), file)]

    def everything(self) -> list[str]:
        """All files that may tell of something, the same that are searched: records and what waits too."""
        return files_of(self.workspace, self.scope)

    def holds(self, text: str, files: Sequence[str]) -> Remembered | None:
        """The entry of `files` that says the same as `text`."""
        wanted = normal(text)
        found = (one for file in files for one in entries_of(self.read(file), file))
        return next((one for one in found if normal(one.text) == wanted), None)

    def adding(self, file: str, lines: Sequence[str]) -> Hunk | None:
        """The hunk that appends to `file` the lines it does not hold yet; None when it holds all."""
        text = self.read(file)
        known = {normal(one.text) for one in entries_of(text, file)} | set(map(normal, lines_of(text)))
        fresh = tuple(line for line in dict.fromkeys(lines) if normal(line) and normal(line) not in known)
        if not fresh:
            return None
        if not text:
            name = file.rpartition("/")[2].removesuffix(".md")
            return Hunk(file, after=(f"# {'Memory' if name == 'MEMORY' else name}", "", *fresh))
        old = lines_of(text)
        gap = ("",) if old[-1].strip() and old[-1].startswith("#") else ()
        below_text = old[-1].strip() and not re.match(r"\s*(?:[-*+]|\d+[.)])\s", old[-1]) and not gap
        return Hunk(file, after=(*(("",) if below_text else gap), *fresh), anchor=tuple(old[-2:]))

    def apply(self, hunks: Sequence[Hunk]) -> None:
        """Carry out hunks on the files as they are now. Raises `WorkspaceError`."""
        for hunk in hunks:
            rewrite(self.workspace, hunk.file, lambda text, hunk=hunk: put(text, hunk))

    def without(self, entry: Remembered) -> Hunk:
        """The hunk that takes an entry out."""
        return self.instead(entry, ())

    def instead(self, entry: Remembered, lines: Sequence[str]) -> Hunk:
        """The hunk that puts `lines` in the place of an entry."""
        old = lines_of(self.read(entry.file))
        above = tuple(old[max(0, entry.start - 2) : entry.start])
        return Hunk(entry.file, tuple(old[entry.start : entry.end]), tuple(lines), above)

    def rewritten(self, file: str, text: str) -> list[Hunk]:
        """The hunks that make `text` of a file as it is now, from its end to its beginning."""
        from difflib import SequenceMatcher  # only for a consolidation

        old, new = lines_of(self.read(file)), lines_of(text)
        hunks: list[Hunk] = []
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind != "equal":
                hunks.append(Hunk(file, tuple(old[a:b]), tuple(new[c:d]), tuple(old[max(0, a - 2) : a]), a))
        return hunks[::-1]

    def saying(self, words: str) -> list[str]:
        """The files in which an entry or paragraph says `words` (normalised)."""
        every = dict.fromkeys(self.everything())
        return [file for file in every if any(says(one.text, words) for one in entries_of(self.read(file), file))]

    def erase(self, words: str, files: Sequence[str]) -> None:
        """Take every entry or paragraph that says `words` (normalised) out of `files`, as many as can be.

        Raises `WorkspaceError` that names those which cannot be written.
        """

        def edit(text: str) -> str:
            for one in reversed(entries_of(text, "")):
                if says(one.text, words):
                    lines = lines_of(text)
                    above = tuple(lines[max(0, one.start - 2) : one.start])
                    text = put(text, Hunk("", tuple(lines[one.start : one.end]), anchor=above))
            return text

        failed: list[str] = []
        for file in files:
            try:
                rewrite(self.workspace, file, edit)
            except WorkspaceError as error:
                failed.append(error.present())
        if failed:
            raise WorkspaceError("Not all of it is forgotten.\n" + "\n".join(failed), hint="Then forget it again.")

    def could_go(self, limit: int) -> tuple[int, list[Remembered]]:
        """The characters of what lasts, and when they are over `limit` what could go: the oldest, longest first."""
        file = self.scope.lasting[0]
        size = len(self.read(file))
        if size <= limit:
            return size, []
        known = sorted(entries_of(self.read(file), file), key=lambda one: (one.at[:7] or "9", -len(one.text)))
        return size, known[:LISTED]

    def confirmed(self, entry: Remembered, *, at: str, day: str) -> tuple[Hunk, ...]:
        """The hunks that move what waited to where it belongs, on the owner's word."""
        lasts = entry.source == "said" or entry.source.startswith("notes of")
        file = self.scope.lasting[0] if lasts else f"{self.scope.folder}/{day}.md"
        added = self.adding(file, (marked(entry.text, at=at, source=f"{entry.source or 'kept'}, confirmed"),))
        return (*((added,) if added else ()), self.without(entry))

    def _lasting(self) -> Iterator[str]:
        """Those there are, each once: `memory.md` is `MEMORY.md` where case does not matter."""
        seen: set[tuple[int, int]] = set()
        for file in self.scope.lasting:
            try:
                status = os.stat(os.path.join(self.workspace, file))
            except OSError:
                continue
            if (place := (status.st_dev, status.st_ino)) not in seen:
                seen.add(place)
                yield file


def says(text: str, words: str) -> bool:
    """Whether a text says normalised `words` and little else: what only mentions them among other things does not."""
    there = normal(text)
    if there == words:
        return True
    about = len(words) >= MOSTLY * len(there)
    return about and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", there) is not None


def checked(text: str) -> str:
    """`text`, if it can be an entry. Raises `WorkspaceError`."""
    if not normal(text):
        raise WorkspaceError("There is nothing to remember in an empty text.")
    if len(text) > LONGEST:
        raise WorkspaceError(f"An entry has at most {LONGEST:,} characters.", hint="Put details into a file.")
    return text
