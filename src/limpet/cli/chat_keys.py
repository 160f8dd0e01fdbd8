"""Keys pressed while a turn runs: Ctrl-O unfolds at once, everything else stands at the next prompt."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager

from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

_LOCAL = 3
"""Place of the local modes among the attributes of a terminal."""


@contextmanager
def listening(on_unfold: Callable[[], None]) -> Generator[None]:
    """Inside, typing is not echoed over what is drawn. Ctrl-C stays a signal."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = termios.tcgetattr(descriptor)
    quiet[_LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
    typed: list[KeyPress] = []
    source = create_input()

    def read() -> None:
        for key in source.read_keys():
            if key.key == Keys.ControlO:
                on_unfold()
            else:
                typed.append(key)

    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    try:
        with source.attach(read):
            yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
        typed += source.flush_keys()
        store_typeahead(source, typed)
