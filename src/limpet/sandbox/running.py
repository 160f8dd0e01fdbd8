"""A command that was started: its pipes, its end, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import socket
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
"""Seconds between two chunks of output of what outlives its command."""


class Pipes:
    """The pipes of a command, each (read end, write end): `input` only where it may be written to.

    `terminal` is a pair of sockets (ours, theirs) over which our end of the command's terminal comes.
    """

    def __init__(self, *, reads: bool = False, terminal: bool = False) -> None:
        self.output, self.status, self.life = os.pipe(), os.pipe(), os.pipe()
        self.input = os.pipe() if reads else None
        self.terminal = socket.socketpair() if terminal else None

    @property
    def passed(self) -> tuple[int, ...]:
        """What the command's init is given beside its standard streams."""
        terminal = (self.terminal[1].fileno(),) if self.terminal else ()
        return (self.status[1], self.life[0], *terminal)

    def close_theirs(self) -> None:
        for fd in (self.output[1], self.status[1], self.life[0], *(self.input or ())[:1]):
            os.close(fd)
        if self.terminal:
            self.terminal[1].close()

    def close_ours(self) -> None:
        for fd in (self.output[0], self.status[0], self.life[1], *(self.input or ())[1:]):
            os.close(fd)
        if self.terminal:
            self.terminal[0].close()


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
        self.killed = False
        self._process = process
        self._life, self._state = pipes.life[1], pipes.status[0]
        self.input = pipes.input[1] if pipes.input else -1
        self._on_output: Callable[[bytes], None] | None = on_output
        self._slow = False
        self._keep = keep
        self._told = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._outputs: set[int] = set()
        self._add_output(pipes.output[0])
        self._arriving = pipes.terminal[0] if pipes.terminal else None
        if self._arriving:
            self._arriving.setblocking(False)
            self._loop.add_reader(self._arriving, self._take_terminal)
        if self.input >= 0:
            os.set_blocking(self.input, False)
        os.set_blocking(self._state, False)
        self._loop.add_reader(self._state, self._read_status)
        keep.add(self)
        self._ended = asyncio.create_task(self._wait(), name="command")

    async def kill(self) -> None:
        """End all processes of the command; returns when none is left."""
        self.killed = True
        self.drain()
        self._close_life()
        await asyncio.shield(self._ended)

    def drain(self) -> None:
        """Take what the command wrote before it ended. What its children write later is taken slowly."""
        self._take_terminal()
        self._slow = True
        for fd in list(self._outputs):
            for _ in range(_DRAINS):  # a child in the background may write for ever
                if not self._read_output(fd):
                    break

    def mute(self) -> None:
        """Nobody wants what is written from now on."""
        self._on_output = None

    @property
    def pid(self) -> int:
        """The process above all others of the command, here."""
        return self._process.pid

    async def gone(self) -> None:
        """Wait until none of its processes is left."""
        await asyncio.shield(self._ended)

    def close_input(self) -> None:
        """The command reads the end of its input. A terminal has none."""
        if self.input >= 0 and self.input not in self._outputs:
            os.close(self.input)
            self.input = -1

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
        self.close_input()
        for fd in list(self._outputs):
            self._drop_output(fd)
        self._loop.remove_reader(self._state)
        os.close(self._state)
        self._state = -1
        self._stop_arriving()
        if self._group:
            self._last_passed = self._group.passed()
            self._group.remove()
        self.status.end()

    def _take_terminal(self) -> None:
        """Our end of the command's terminal, once it is there: it is read from and written to."""
        if self._arriving is None:
            return
        try:
            _, fds, _, _ = socket.recv_fds(self._arriving, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            fds = []
        self._stop_arriving()
        for fd in fds:
            os.set_inheritable(fd, False)
            self.input = fd
            self._add_output(fd)

    def _stop_arriving(self) -> None:
        if self._arriving is not None:
            self._loop.remove_reader(self._arriving)
            self._arriving.close()
            self._arriving = None

    def _add_output(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._outputs.add(fd)
        self._loop.add_reader(fd, self._read_output, fd)

    def _drop_output(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._outputs.discard(fd)
        if fd == self.input:
            self.input = -1
        os.close(fd)

    def _read_output(self, fd: int) -> bool:
        """Hand on what is there; whether there may be more."""
        data = _read(fd)
        if data is None:
            return False
        if not data:
            self._drop_output(fd)
            return False
        self.last = (self.last + data)[-2_000:]
        if self._on_output is not None:
            self._on_output(data)
        if self._slow:  # so that it costs next to nothing and the child is not held up for ever
            self._loop.remove_reader(fd)
            self._loop.call_later(_IDLE, self._read_again, fd)
        return True

    def _read_again(self, fd: int) -> None:
        if fd in self._outputs:
            self._loop.add_reader(fd, self._read_output, fd)

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
