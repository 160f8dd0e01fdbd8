"""A terminal as a stack of lines that stay, with a few below them that are drawn again and again.

What stays is written once and belongs to the scrollback of the terminal. What changes is never higher than the window,
so it can always be reached again with the cursor, and is redrawn line by line over itself: nothing flickers.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit.application import get_app_or_none, run_in_terminal
from rich.cells import cell_len

Size = Callable[[], tuple[int, int]]
"""Columns and rows of the window as they are now."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
NARROWEST, LOWEST = 20, 4


def window() -> tuple[int, int]:
    found = shutil.get_terminal_size((80, 24))
    return max(NARROWEST, found.columns), max(LOWEST, found.lines)


def reflows(environ: Mapping[str, str]) -> bool:
    """Whether lines that were written are folded anew when the window becomes narrower: nearly all terminals do that,
    but not xterm, GNU screen and the console of Linux."""
    return not (environ.get("XTERM_VERSION") or environ.get("STY") or environ.get("TERM") == "linux")


def cells(line: str) -> int:
    """Columns that a line with styles takes."""
    return cell_len(_STYLE.sub("", line))


class Screen:
    """`put` writes what stays, `draw` replaces what changes. A prompt that is open is put below what is written."""

    def __init__(self, stream: TextIO, *, size: Size = window, folds: bool | None = None) -> None:
        self._stream = stream
        self._size = size
        self._folds = reflows(os.environ) if folds is None else folds
        self._drawn: list[str] = []
        self._columns = 0
        self._aside = 0

    @property
    def size(self) -> tuple[int, int]:
        return self._size()

    def put(self, lines: Sequence[str]) -> None:
        """Write lines that stay, above what changes."""
        text = "".join(f"{line}\n" for line in lines)
        app = get_app_or_none()
        if app is not None and app.is_running:
            run_in_terminal(lambda: self._write(text))
            return
        drawn = self._drawn
        before = self._erased()
        self._drawn = []
        self._write(before + text + self._laid(drawn if not self._aside else []))

    def draw(self, lines: Sequence[str]) -> None:
        """Show `lines` in place of those drawn before, the last ones when there is no room for all."""
        columns, rows = self._size()
        fitting = list(lines)[-(rows - 1) :] if not self._aside else []
        if fitting == self._drawn and columns == self._columns:
            return
        before = self._home()
        self._drawn = []
        text = before + self._laid(fitting) + ("\x1b[J" if before else "")
        if text:
            self._write(text)

    def clear(self) -> None:
        """Take away what was drawn."""
        self.draw([])

    @contextmanager
    def aside(self) -> Generator[None]:
        """While this lasts nothing is drawn: something else has the lower end of the screen."""
        self.clear()
        self._aside += 1
        try:
            yield
        finally:
            self._aside -= 1

    def _laid(self, lines: list[str]) -> str:
        """Lines to be changed later, each clearing what stood there; the cursor stays at the end of the last."""
        self._drawn, self._columns = lines, self._size()[0]
        return "\r" + "\n".join(f"{line}\x1b[K" for line in lines) if lines else ""

    def _home(self) -> str:
        """Go to the beginning of what was drawn; nothing when there is nothing."""
        if not self._drawn:
            return ""
        columns = self._size()[0]
        rows = len(self._drawn)
        if self._folds and columns < self._columns:
            rows = sum(max(1, -(-cells(line) // columns)) for line in self._drawn)
        return f"\x1b[{rows - 1}A\r" if rows > 1 else "\r"

    def _erased(self) -> str:
        home = self._home()
        return f"{home}\x1b[J" if home else ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
