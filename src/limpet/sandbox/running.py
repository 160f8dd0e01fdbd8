"""A command that was started: its pipes, its end, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from limpet.sandbox.cgroup import Group
from limpet.sandbox.status import Status

KILL_WAIT = 3.0
"""Seconds that killed processes are waited for before the process above them is killed too."""
_CHUNK = 65_536
_DRAINS = 8
"""Chunks taken at most when the command has ended: a pipe holds one."""
_IDLE = 0.02
"""Seconds between two chunks of output that nobody wants."""


class Pipes:
    """The three pipes of a command, each (read end, write end)."""

    def __init__(self) -> None:
        self.output, self.status, self.life = os.pipe(), os.pipe(), os.pipe()

    def close_theirs(self) -> None:
        for fd in (self.output[1], self.status[1], self.life[0]):
            os.close(fd)

    def close_ours(self) -> None:
        for fd in (self.output[0], self.status[0], self.life[1]):
            os.close(fd)


class Running:
    """A started command. One task (`_ended`) waits for its processes and gives everything back."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        pipes: Pipes,
        on_output: Callable[[bytes], None],
        *,
        group: Group | None,
        keep: set[Running],
    ) -> None:
        self.status = Status()
        self._group = group
        self._last_passed = ""
        self.last = b""
        self._process = process
        self._output, self._life, self._state = pipes.output[0], pipes.life[1], pipes.status[0]
        self._on_output: Callable[[bytes], None] | None = on_output
        self._keep = keep
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        for fd in (self._output, self._state):
            os.set_blocking(fd, False)
        self._loop.add_reader(self._output, self._read_output)
        self._loop.add_reader(self._state, self._read_status)
        keep.add(self)
        self._ended = asyncio.create_task(self._wait(), name="command")

    async def kill(self) -> None:
        """End all processes of the command; returns when none is left."""
        self.drain()
        self._close_life()
        await asyncio.shield(self._ended)

    def drain(self) -> None:
        """Take what the command wrote before it ended. What its children write later is not kept."""
        for _ in range(_DRAINS):  # a child in the background may write for ever
            if self._output < 0 or not self._read_output():
                break
        self._on_output = None

    def passed(self) -> str:
        """The limit of the control group that was passed, empty when none was."""
        return self._last_passed or (self._group.passed() if self._group else "")

    async def _wait(self) -> None:
        try:
            await self._until_killed()
        finally:
            self._close_life()
            self._give_back()
            self._keep.discard(self)

    async def _until_killed(self) -> None:
        """Until the process ended by itself, or was told to and given `KILL_WAIT` for it: then it is killed."""
        waiting = asyncio.create_task(self._process.wait())
        told = asyncio.create_task(self._told.wait())
        try:
            await asyncio.wait({waiting, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also when this task is cancelled, because the loop is ending
            told.cancel()
            self._close_life()
            if not waiting.done():
                await asyncio.wait({waiting}, timeout=KILL_WAIT)
            if not waiting.done():
                self._kill_above()
                await asyncio.wait({waiting}, timeout=KILL_WAIT)

    def _kill_above(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    def _close_life(self) -> None:
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
            self._told.set()

    def _give_back(self) -> None:
        self.drain()
        for fd in (self._output, self._state):
            if fd >= 0:
                self._loop.remove_reader(fd)
                os.close(fd)
        self._output = self._state = -1
        if self._group:
            self._last_passed = self._group.passed()
            self._group.remove()
        self.status.end()

    def _read_output(self) -> bool:
        """Hand on what is there; whether there may be more."""
        data = _read(self._output)
        if data is None:
            return False
        if not data:
            self._loop.remove_reader(self._output)
            return False
        self.last = (self.last + data)[-2_000:]
        if self._on_output is not None:
            self._on_output(data)
        else:  # nobody wants it: take it slowly, so that it costs nothing and the child is not held up for ever
            self._loop.remove_reader(self._output)
            self._loop.call_later(_IDLE, self._read_again)
        return True

    def _read_again(self) -> None:
        if self._output >= 0:
            self._loop.add_reader(self._output, self._read_output)

    def _read_status(self) -> None:
        data = _read(self._state)
        if data is None:
            return
        if data:
            self.status.feed(data)
        else:
            self._loop.remove_reader(self._state)
            self.status.end()


def _read(fd: int) -> bytes | None:
    """What is there now; None when nothing is yet, empty at the end."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
