"""Lines that stay and lines that change, in windows of any size."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.cli.chat_screen import Screen, cells, reflows
from tests.cli.screen import Window

LINES = st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=19), max_size=30)


class Terminal:
    """A stream and a window whose size can change."""

    def __init__(self, columns: int = 20, rows: int = 8, *, folds: bool = False) -> None:
        self.stream = io.StringIO()
        self.size = (columns, rows)
        self.screen = Screen(self.stream, size=lambda: self.size, folds=folds)

    def shown(self) -> list[str]:
        window = Window(self.size[0])
        window.feed(self.stream.getvalue().replace("\n", "\r\n"))
        return window.text.rstrip().splitlines()


def test_what_is_drawn_again_replaces_what_was_drawn() -> None:
    terminal = Terminal()
    terminal.screen.draw(["one", "two", "three"])
    terminal.screen.draw(["four"])
    assert terminal.shown() == ["four"]


def test_what_stays_stands_above_what_changes() -> None:
    terminal = Terminal()
    terminal.screen.draw(["at work"])
    terminal.screen.put(["said"])
    terminal.screen.draw(["still at work"])
    assert terminal.shown() == ["said", "still at work"]


@given(st.lists(st.tuples(st.booleans(), LINES), max_size=12))
def test_all_that_stays_is_there_once_and_in_order(steps: list[tuple[bool, list[str]]]) -> None:
    terminal, expected = Terminal(), list[str]()
    for stays, lines in steps:
        if stays:
            terminal.screen.put([f"!{line[:18]}" for line in lines])
            expected += [f"!{line[:18]}" for line in lines]
        else:
            terminal.screen.draw(lines)
    terminal.screen.clear()
    assert terminal.shown() == expected


def test_nothing_is_drawn_aside() -> None:
    terminal = Terminal()
    terminal.screen.draw(["at work"])
    with terminal.screen.aside():
        terminal.screen.draw(["at work"])
        terminal.screen.put(["asked"])
        assert terminal.shown() == ["asked"]


@pytest.mark.parametrize(("folds", "up"), [(True, "\x1b[3A"), (False, "\x1b[1A")])
def test_lines_that_were_folded_by_a_narrower_window_are_found_again(folds: bool, up: str) -> None:
    terminal = Terminal(40, folds=folds)
    terminal.screen.draw(["x" * 39, "漢" * 19])
    terminal.size = (20, 8)
    before = len(terminal.stream.getvalue())
    terminal.screen.draw(["short"])
    assert terminal.stream.getvalue()[before:].startswith(up)


def test_styles_take_no_room() -> None:
    assert cells("\x1b[1;31m漢字\x1b[0m!") == 5


def test_terminals_that_do_not_fold_are_known() -> None:
    assert reflows({"TERM": "xterm-256color"})
    assert not reflows({"TERM": "xterm", "XTERM_VERSION": "XTerm(390)"})
    assert not reflows({"TERM": "linux"})
