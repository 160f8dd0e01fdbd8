"""A command that runs: waiting for its end, writing to it, ending it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from limpet.errors import SandboxError
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.running import Running

Place = Literal["sandbox", "host"]
Input = Literal["none", "pipe", "terminal"]

ROWS, COLUMNS = 40, 120
"""The size of a command's terminal."""
WRITE_WAIT = 5.0
"""Seconds that a command may take to read what is written to it."""


class Job(Struct, frozen=True):
    """A command to run. Paths are absolute; `timeout` is in seconds; `env` is the whole environment.

    `hidden` are folders beneath the workspace that the sandbox shows empty, `readonly` what there cannot be written.
    `input`: nothing to read, a pipe, or a terminal of its own for input and output.
    `network` is what it sees of that; on the host a command has all of it.
    """

    command: str
    workspace: str
    folder: str
    env: Mapping[str, str]
    timeout: float = 120.0
    limits: Limits = Limits()
    place: Place = "sandbox"
    hidden: tuple[str, ...] = ()
    readonly: tuple[str, ...] = ()
    input: Input = "none"
    network: Network = NO_NETWORK

    @property
    def networked(self) -> bool:
        """Whether it can reach anything beyond this machine."""
        return self.place == "host" or self.network.kind != "none"


class Child(Struct, frozen=True):
    """A process that the command left running; `pid` as the command's own place counts."""

    pid: int
    command: str


class Finished(Struct, frozen=True):
    """How a command ended. `exit_code` is None when it was killed as a whole: `timed_out`, for a limit, or on our word
    (`killed`). `limit` names the limit for which it or one of its processes was killed, or was refused more of them.

    `duration` is milliseconds.
    """

    exit_code: int | None
    timed_out: bool = False
    killed: bool = False
    limit: str = ""
    background: tuple[Child, ...] = ()
    duration: int = 0


class Command:
    """A started `job`. It is killed when its time is over, whoever waits; what it left running then lives on."""

    def __init__(self, running: Running, job: Job) -> None:
        self.job = job
        self.running = running
        self._began = time.monotonic()
        self._finished: Finished | None = None
        self._error: SandboxError | None = None
        self._watch = asyncio.create_task(self._until_ended(), name="command end")

    @property
    def pid(self) -> int:
        """The process above all of the command's."""
        return self.running.pid

    @property
    def seconds(self) -> float:
        """Since it was started."""
        return time.monotonic() - self._began

    @property
    def finished(self) -> Finished | None:
        """How it ended; None while it runs. Raises `SandboxError` when it could not be started as demanded."""
        if self._error is not None:
            raise self._error
        return self._finished

    @property
    def lost(self) -> bool:
        """Whether what looks after its processes was never there, or was killed by somebody else."""
        return self._error is not None

    async def wait(self, seconds: float | None = None) -> Finished | None:
        """Its end, or None when `seconds` are over before. Raises as `finished`."""
        await asyncio.wait((self._watch,), timeout=seconds)
        return self.finished

    async def gone(self) -> None:
        """Wait until none of its processes is left, those in the background included."""
        await asyncio.shield(self._watch)
        await self.running.gone()

    async def kill(self) -> None:
        """End all of its processes; returns when none is left."""
        await self.running.kill()
        await asyncio.wait((self._watch,))

    async def write(self, data: bytes) -> None:
        """Write to its input.

        Raises `BrokenPipeError` when there is none (any more), `TimeoutError` when it is not read.
        """
        async with asyncio.timeout(WRITE_WAIT):
            while data:
                if self.running.input < 0:
                    raise BrokenPipeError
                try:
                    data = data[os.write(self.running.input, data) :]
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                except BrokenPipeError:
                    raise
                except OSError:  # EIO: nobody has the terminal open any more
                    raise BrokenPipeError from None

    async def _until_ended(self) -> None:
        status = self.running.status
        try:
            async with asyncio.timeout(self.job.timeout):
                await status.ready.wait()
        except TimeoutError:
            await self.running.kill()
            self._finished = Finished(None, timed_out=True, duration=self._duration())
            return
        self.running.drain()
        limit = status.limit or self.running.passed()
        if status.exit_code is None and (limit or self.running.killed):
            self._finished = Finished(None, killed=not limit, limit=limit, duration=self._duration())
        elif status.exit_code is None:
            hint = self.running.last.decode("utf-8", "replace").strip()
            self._error = SandboxError("the command could not be started in the sandbox", hint=hint)
        else:
            left = tuple(Child(pid, line) for pid, line in status.left)
            self._finished = Finished(status.exit_code, limit=limit, background=left, duration=self._duration())

    def _duration(self) -> int:
        return int(self.seconds * 1000)
