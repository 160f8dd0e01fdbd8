"""Running commands: in the sandbox or on the host, with one end for all of their processes.

`Sandbox.run` returns when the command itself has ended; children it left in the background live on until they end,
`close` is called, or the agent dies.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from subprocess import DEVNULL
from typing import Literal

from msgspec import Struct

from limpet.errors import SandboxError
from limpet.sandbox import bubblewrap, cgroup
from limpet.sandbox.limits import Limits
from limpet.sandbox.probe import SandboxReport, examine
from limpet.sandbox.status import Status

Place = Literal["sandbox", "host"]

KILL_WAIT = 3.0
"""Seconds that killed processes are waited for before the process above them is killed too."""
_CHUNK = 65_536


class Job(Struct, frozen=True):
    """A command to run. Paths are absolute; `timeout` is in seconds; `env` is the whole environment.

    `hidden` are folders beneath the workspace that the sandbox shows empty.
    """

    command: str
    workspace: str
    folder: str
    env: Mapping[str, str]
    timeout: float = 120.0
    limits: Limits = Limits()
    place: Place = "sandbox"
    hidden: tuple[str, ...] = ()


class Child(Struct, frozen=True):
    """A process that the command left running; `pid` as the command's own place counts."""

    pid: int
    command: str


class Finished(Struct, frozen=True):
    """How a command ended. `exit_code` is None when it was killed as a whole. `limit` names the limit for
    which it or one of its processes was killed, or was refused more of them.

    `duration` is milliseconds.
    """

    exit_code: int | None
    timed_out: bool = False
    limit: str = ""
    background: tuple[Child, ...] = ()
    duration: int = 0


class Sandbox:
    """Where commands run. Holds what still runs in the background; `close` ends all of it."""

    def __init__(self, *, hidden: tuple[str, ...] = (), enabled: bool = True, groups: bool = True) -> None:
        """`hidden` folders are never seen by commands; `groups`: use control groups where they can be made."""
        self.hidden = hidden
        self._enabled = enabled
        self._groups = groups
        self._running: set[_Running] = set()

    @cached_property
    def report(self) -> SandboxReport:
        """What there is, tried out once (about 40 ms the first time)."""
        return examine(enabled=self._enabled)

    async def run(self, job: Job, on_output: Callable[[bytes], None]) -> Finished:
        """Run `job` to its end. Cancelling kills all of its processes before this returns.

        Raises `SandboxError` when it could not be started as demanded.
        """
        began = time.monotonic()
        running = await self._start(job, on_output)
        try:
            async with asyncio.timeout(job.timeout):
                await running.status.ready.wait()
        except TimeoutError:
            await running.kill()
            return Finished(None, timed_out=True, duration=_since(began))
        except BaseException:
            await running.kill()
            raise
        running.drain()
        return self._finished(running, began)

    async def close(self) -> None:
        """End everything that still runs."""
        for running in list(self._running):
            await running.kill()

    def _finished(self, running: _Running, began: float) -> Finished:
        status = running.status
        limit = status.limit or running.passed()
        if status.exit_code is None and limit:
            return Finished(None, limit=limit, duration=_since(began))
        if status.exit_code is None:
            raise SandboxError(
                "the command could not be started in the sandbox", hint=running.last.decode("utf-8", "replace").strip()
            )
        left = tuple(Child(pid, line) for pid, line in status.left)
        return Finished(status.exit_code, limit=limit, background=left, duration=_since(began))

    async def _start(self, job: Job, on_output: Callable[[bytes], None]) -> _Running:
        if job.place == "sandbox" and self.report.kind == "none":
            raise SandboxError(f"there is no sandbox here: {self.report.reason}", hint=self.report.remedy)
        group = _group(job.limits) if self._groups else None
        pipes = _Pipes()
        try:
            process = await asyncio.create_subprocess_exec(
                *(group.prefix() if group else ()),
                *self._outer(job),
                *_inner(job, status=pipes.status[1], life=pipes.life[0], watch_memory=group is None),
                stdin=DEVNULL,
                stdout=pipes.output[1],
                stderr=pipes.output[1],
                pass_fds=(pipes.status[1], pipes.life[0]),
                cwd=job.folder if job.place == "host" else "/",
                env=dict(job.env),
                start_new_session=True,
            )
        except BaseException as error:
            pipes.close_all()
            if group:
                group.remove()
            if isinstance(error, OSError | ValueError):
                raise SandboxError(f"the command could not be started: {error}") from None
            raise
        pipes.close_theirs()
        running = _Running(process, pipes, on_output, group=group, keep=self._running)
        self._running.add(running)
        return running

    def _outer(self, job: Job) -> list[str]:
        python = [bubblewrap.interpreter(), "-I", "-S"]
        if job.place == "host":
            return [*python, os.path.join(os.path.dirname(__file__), "init.py")]
        hidden = (*self.hidden, *job.hidden)
        argv = bubblewrap.arguments(
            self.report.path,
            workspace=job.workspace,
            folder=job.folder,
            env=job.env,
            limits=job.limits,
            hidden=hidden,
        )
        return [*argv, *python, bubblewrap.INIT]


def _group(limits: Limits) -> cgroup.Group | None:
    parents = cgroup.parents()
    try:
        return cgroup.Group(parents, limits) if parents else None
    except OSError:  # the permission was taken away meanwhile: the watch stands alone
        return None


def _inner(job: Job, *, status: int, life: int, watch_memory: bool) -> list[str]:
    """The arguments of the init. It watches the memory only where no control group counts it better."""
    memory = job.limits.memory if watch_memory else 0
    return [str(value) for value in (status, life, job.place, memory, job.limits.processes, job.limits.file_size)] + [
        job.command
    ]


class _Pipes:
    """The three pipes of a command, each (read end, write end)."""

    def __init__(self) -> None:
        self.output, self.status, self.life = os.pipe(), os.pipe(), os.pipe()

    def close_theirs(self) -> None:
        for fd in (self.output[1], self.status[1], self.life[0]):
            os.close(fd)

    def close_all(self) -> None:
        for fd in (*self.output, *self.status, *self.life):
            os.close(fd)


class _Running:
    """A started command. One task (`_ended`) waits for its processes and gives everything back."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        pipes: _Pipes,
        on_output: Callable[[bytes], None],
        *,
        group: cgroup.Group | None,
        keep: set[_Running],
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
        self._ended = asyncio.create_task(self._wait(), name="command")

    async def kill(self) -> None:
        """End all processes of the command; returns when none is left."""
        self.drain()
        self._close_life()
        await asyncio.shield(self._ended)

    def drain(self) -> None:
        """Take what the command wrote before it ended. What its children write later is not kept."""
        while self._output >= 0 and self._read_output():
            pass
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
            await asyncio.wait({waiting}, timeout=KILL_WAIT)
        finally:  # also when this task is cancelled, because the loop is ending
            told.cancel()
            if not waiting.done():
                self._close_life()
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
        return True

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


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
