"""A terminal as a person sees it: the program on a pseudo-terminal, and what stands in its window."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import struct
import sys
import termios
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from limpet.testing.fakes.openai import FakeOpenAI
from tests.cli.program import GUARD, at, environment

_TOKEN = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\]|\x1b.|[\r\n\b]|[^\x1b\r\n\b]")
UP, DOWN, ENTER, ESCAPE = "\x1b[A", "\x1b[B", "\r", "\x1b"


class Window:
    """The lines that a terminal shows, scrolled-out ones included. Knows what our programs send, and no more."""

    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self.lines: list[list[str]] = [[]]
        self.row = self.column = 0
        self.highest = 0
        """Most lines that the cursor went up at once."""

    def feed(self, text: str) -> None:
        for match in _TOKEN.finditer(text):
            if match[2]:
                self._steer(match[1], match[2])
            elif match[0] == "\r":
                self.column = 0
            elif match[0] == "\n":
                self._down(1)
            elif match[0] == "\b":
                self.column = max(0, self.column - 1)
            elif not match[0].startswith("\x1b"):
                self._write(match[0])

    def _write(self, character: str) -> None:
        if self.column >= self.columns:
            self._down(1)
            self.column = 0
        line = self.lines[self.row]
        line += [" "] * (self.column + 1 - len(line))
        line[self.column] = character
        self.column += 1

    def _down(self, count: int) -> None:
        self.row += count
        while len(self.lines) <= self.row:
            self.lines.append([])

    def _steer(self, arguments: str, kind: str) -> None:
        number = int(arguments) if arguments.isdecimal() else 1
        if kind == "A":
            self.row, self.highest = max(0, self.row - number), max(self.highest, number)
        elif kind == "B":
            self._down(number)
        elif kind == "C":
            self.column += number
        elif kind == "D":
            self.column = max(0, self.column - number)
        elif kind == "K":
            del self.lines[self.row][self.column :]
        elif kind == "J":
            del self.lines[self.row][self.column :]
            del self.lines[self.row + 1 :]

    @property
    def text(self) -> str:
        return "\n".join("".join(line).rstrip() for line in self.lines)


class Person:
    """Somebody at the terminal."""

    def __init__(self, terminal: int, window: Window) -> None:
        self._terminal = terminal
        self.window = window
        self.raw = ""
        self.rows = 24

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def paste(self, text: str) -> None:
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int, rows: int) -> None:
        self.rows = rows
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def until(self, seen: str | Callable[[str], bool]) -> None:
        """Wait until the window shows `seen`."""
        try:
            async with asyncio.timeout(GUARD):
                while not (seen in self.window.text if isinstance(seen, str) else seen(self.window.text)):
                    self.look()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{seen!r} is not in:\n{self.window.text}") from None

    def look(self) -> None:
        """Take in what has come."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._terminal, 65_536).decode("utf-8", "replace")
            self.raw += data
            self.window.feed(data)
            if "\x1b[6n" in data:  # where is the cursor? At the lower end
                self.type(f"\x1b[{self.rows};{self.window.column + 1}R")

    async def prompted(self) -> None:
        """Wait for a prompt that takes keys."""
        async with asyncio.timeout(GUARD):
            while termios.tcgetattr(self._terminal)[3] & termios.ISIG:
                self.look()
                await asyncio.sleep(0.02)
        await self.until(lambda text: text.rstrip().splitlines()[-1:] != [] and "\n>" in f"\n{text}")

    async def say(self, text: str) -> None:
        await self.prompted()
        self.type(f"{text}\r")


@contextlib.asynccontextmanager
async def sitting(
    home: Path,
    server: FakeOpenAI,
    *arguments: str,
    columns: int = 80,
    rows: int = 24,
    cwd: Path | None = None,
    **environ: str,
) -> AsyncGenerator[Person]:
    """`limpet chat` in a window of its own; it is left with `exit`, and must end with 0."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    person = Person(ours, Window(columns))
    person.resize(columns, rows)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "limpet", "chat", *arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        cwd=cwd or home,
        env=environment(home, **at(server), **{"TERM": "xterm-256color", "LANG": "C.UTF-8", **environ}),
    )
    os.close(theirs)
    try:
        yield person
        await person.say("exit")
        async with asyncio.timeout(GUARD):
            while process.returncode is None:
                with contextlib.suppress(OSError):
                    person.look()
                await asyncio.sleep(0.02)
        assert process.returncode == 0, person.window.text
        assert "Traceback" not in person.raw
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
