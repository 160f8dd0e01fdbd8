"""An answer while it grows: blocks that are complete are written for good, the last one is drawn until it is."""

from __future__ import annotations

from collections.abc import Callable

from limpet.cli import chat_render as render

LONG_BLOCK = 8_000
"""Characters from which on a block is shown as plain text until it is complete."""


class Answer:
    """`put` is given each complete piece of Markdown."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._said = ""
        self._pending = ""

    def begin(self) -> None:
        """Another answer follows; what was said of this one is written already, or does not count."""
        self._said = self._pending = ""

    def add(self, text: str) -> None:
        self._said += text
        self._pending += text

    def covers(self, text: str) -> bool:
        """Whether `text` was shown already; it counts once."""
        wanted = text.strip()
        at = self._said.find(wanted) if wanted else -1
        if at >= 0:
            self._said = self._said[at + len(wanted) :]
        return at >= 0

    def settle(self) -> None:
        """Write the blocks that are complete."""
        done = render.settled(self._pending) if "\n" in self._pending else 0
        if done:
            complete, self._pending = self._pending[:done], self._pending[done:]
            self._put(complete)

    def flush(self) -> None:
        """Write all that was said so far."""
        complete, self._pending = self._pending, ""
        if complete.strip():
            self._put(complete)

    def growing(self, width: int) -> list[str]:
        """The block that is not complete yet."""
        if not self._pending.strip():
            return []
        if len(self._pending) > LONG_BLOCK:
            return render.lines_of(render.block(self._pending[-LONG_BLOCK // 2 :], ""), width=width)
        return render.lines_of(render.markdown(self._pending), width=width)
