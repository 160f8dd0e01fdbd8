"""Choosing one of a few lines at the lower end of the screen: arrows and Enter, or a key of its own for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, Layout, Window

from limpet.cli.terminal import printable

NO_KEYS: Mapping[str, int] = {}
ROOM = 6
"""Rows of the window that are left to what stands above."""


class _List:
    """The rows, and which one the arrow is at."""

    def __init__(self, title: str, rows: Sequence[str], at: int) -> None:
        self._title = printable(title)
        self._rows = [" ".join(printable(row).split()) for row in rows]
        self.at = at

    def move(self, by: int) -> None:
        self.at = (self.at + by) % len(self._rows)

    def text(self) -> StyleAndTextTuples:
        size = get_app().output.get_size()
        shown = max(3, size.rows - ROOM)
        first = min(max(0, self.at - shown // 2), max(0, len(self._rows) - shown))
        lines: StyleAndTextTuples = [("bold", f"{self._title[: size.columns - 1]}\n")]
        for number, row in enumerate(self._rows[first : first + shown], start=first):
            mark = "> " if number == self.at else "  "
            lines.append(("reverse" if number == self.at else "", f"{mark}{row}"[: size.columns - 1]))
            lines.append(("", "\n"))
        return lines[:-1]


async def pick(title: str, rows: Sequence[str], *, keys: Mapping[str, int] = NO_KEYS, start: int = 0) -> int | None:
    """The number of the chosen row; None for Esc and Ctrl-D. Raises `KeyboardInterrupt` on Ctrl-C."""
    offered = _List(title, rows, start)
    app: Application[int | None] = Application(
        layout=Layout(Window(FormattedTextControl(offered.text, focusable=True, show_cursor=False))),
        key_bindings=_bindings(offered, keys),
        erase_when_done=True,
    )
    return await app.run_async(handle_sigint=False)  # its handler takes ours away


def _bindings(offered: _List, keys: Mapping[str, int]) -> KeyBindings:
    bound = KeyBindings()

    @bound.add("up")
    @bound.add("c-p")
    def up(event: KeyPressEvent) -> None:
        offered.move(-1)

    @bound.add("down")
    @bound.add("c-n")
    def down(event: KeyPressEvent) -> None:
        offered.move(1)

    @bound.add("enter")
    def take(event: KeyPressEvent) -> None:
        event.app.exit(result=offered.at)

    @bound.add("escape", eager=True)
    @bound.add("c-d")
    def leave(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    @bound.add("c-c")
    def stop(event: KeyPressEvent) -> None:
        event.app.exit(exception=KeyboardInterrupt())

    for key, row in keys.items():

        @bound.add(key)
        def press(event: KeyPressEvent, row: int = row) -> None:
            event.app.exit(result=row)

    _ = (up, down, take, leave, stop)
    return bound
