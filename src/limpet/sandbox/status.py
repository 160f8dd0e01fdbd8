"""What the init of a command says on its status pipe."""

from __future__ import annotations

import asyncio


class Status:
    """Filled while lines arrive. `ready` is set when the command's end is known, or nothing more can come."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.limit = ""
        self.left: list[tuple[int, str]] = []
        self.ready = asyncio.Event()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line.decode("utf-8", "replace"))

    def end(self) -> None:
        """The pipe was closed."""
        self.ready.set()

    def _line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "exit":
            self.exit_code = int(rest)
        elif word == "limit":
            self.limit = rest
        elif word == "left":
            pid, _, command = rest.partition(" ")
            self.left.append((int(pid), command))
        elif word == "ready":
            self.ready.set()
