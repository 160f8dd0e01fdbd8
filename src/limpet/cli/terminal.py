"""Text on terminals of any width, on pipes, and where the locale knows only ASCII."""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Literal, TextIO

Style = Literal["plain", "bold", "dim", "red", "green", "yellow"]
CODES: dict[Style, str] = {"plain": "", "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
NARROWEST = 20


def prepare_streams() -> None:
    """From here on no text can fail to be printed: what a stream's encoding lacks comes out as `?`."""
    _open_missing()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _open_missing() -> None:
    """Standard streams that the caller has closed lead nowhere: else the database would become one of them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def readable(text: str) -> str:
    """A text of the command line, whose bytes may be anything: UTF-8 whatever the locale, the rest as U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return "".join(map(_byte_or_mark, text)).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _byte_or_mark(character: str) -> str:
    return "\ufffd" if "\ud800" <= character < "\udc80" or "\udcff" < character <= "\udfff" else character


def say(text: str, *, error: bool = False, end: str = "\n") -> None:
    """Print `text` for people, made harmless; to standard error when `error`."""
    stream = sys.stderr if error else sys.stdout
    stream.write(printable(text) + end)
    stream.flush()


def hand_over(text: str) -> None:
    """Text for programs and files on standard output: as it is, in UTF-8 whatever the locale.

    On a terminal it is made harmless like any other.
    """
    if sys.stdout.isatty():
        say(text, end="")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def printable(text: str) -> str:
    """`text` without control characters: what a model or a file says must not steer the terminal."""
    if text.isprintable():
        return text
    return "".join(map(_harmless, text))


def _harmless(character: str) -> str:
    if character in "\n\t" or character.isprintable() or character in "\u200d\u200c":  # joiners make emoji and scripts
        return character
    code = ord(character)
    bidirectional = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    if code < 0x20 or 0x7F <= code < 0xA0 or bidirectional or 0xD800 <= code <= 0xDFFF:
        return "" if character == "\r" else "\ufffd"
    return character


def width() -> int:
    """Columns to write in: those of the terminal, at least 20, 80 where there is none."""
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def wants_colour(stream: TextIO) -> bool:
    """Only on a terminal that can, and never against NO_COLOR."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") != "dumb" and stream.isatty()


def is_full() -> bool:
    """Whether the terminal can do more than print lines: a cursor that moves, and a person at both ends."""
    able = os.environ.get("TERM", "").lower() not in ("", "dumb", "unknown")
    return able and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def paint(text: str, style: Style, *, stream: TextIO) -> str:
    """`text` in a colour or weight, where `stream` shows one."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m" if CODES[style] and wants_colour(stream) else text


def wrapped(text: str, *, indent: str = "", columns: int = 0) -> str:
    """`text` in lines that fit, each after `indent`. Long words (paths, keys) are left whole for copying."""
    room = max(NARROWEST, columns or width())
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        lines += textwrap.wrap(
            line,
            room,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [indent.rstrip()]
    return "\n".join(lines)


def pairs(rows: Iterable[tuple[str, str]], *, columns: int = 0) -> str:
    """Names and texts side by side where both fit, else one below the other."""
    table = list(rows)
    room = columns or width()
    left = max((len(name) for name, _ in table), default=0) + 2
    if room - left < NARROWEST:
        return "\n".join(f"{name}\n{wrapped(text, indent='  ', columns=room)}" for name, text in table)
    lines: list[str] = []
    for name, text in table:
        first, *rest = wrapped(text, columns=room - left).splitlines() or [""]
        lines += [f"{name:<{left}}{first}".rstrip(), *(" " * left + line for line in rest)]
    return "\n".join(lines)
