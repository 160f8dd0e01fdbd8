"""Running commands: in the sandbox or on the host, with one end for all of their processes.

`Sandbox.run` returns when the command itself has ended; children it left in the background live on until they end,
`close` is called, or the agent dies.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from subprocess import DEVNULL
from typing import Literal

from msgspec import Struct

from limpet.errors import SandboxError
from limpet.sandbox import bubblewrap, cgroup
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import NO_NETWORK, Network, init_arguments
from limpet.sandbox.probe import SandboxReport, examine
from limpet.sandbox.running import Pipes, Running

Place = Literal["sandbox", "host"]


class Job(Struct, frozen=True):
    """A command to run. Paths are absolute; `timeout` is in seconds; `env` is the whole environment.

    `hidden` are folders beneath the workspace that the sandbox shows empty, `readonly` what there cannot be written.
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
    network: Network = NO_NETWORK


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
        self._running: set[Running] = set()

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

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
        ended = False
        try:
            async with asyncio.timeout(job.timeout):
                ended = await running.status.ready.wait()
        except TimeoutError:
            return Finished(None, timed_out=True, duration=_since(began))
        finally:
            if not ended:
                await running.kill()
        running.drain()
        return self._finished(running, began)

    async def close(self) -> None:
        """End everything that still runs."""
        for running in list(self._running):
            await running.kill()

    def _finished(self, running: Running, began: float) -> Finished:
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

    async def _start(self, job: Job, on_output: Callable[[bytes], None]) -> Running:
        if job.place == "sandbox" and self.report.kind == "none":
            raise SandboxError(f"there is no sandbox here: {self.report.reason}", hint=self.report.remedy)
        group = _group(job.limits) if self._groups else None
        pipes = Pipes()
        running: Running | None = None
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
            running = Running(process, pipes, on_output, group=group, keep=self._running)
            return running
        except (OSError, ValueError) as error:
            raise SandboxError(f"the command could not be started: {error}") from None
        finally:
            pipes.close_theirs()
            if running is None:
                pipes.close_ours()
                if group:
                    group.remove()

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
            readonly=job.readonly,
            network=job.network,
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
    numbers = (status, life, job.place, memory, job.limits.processes, job.limits.file_size)
    door = init_arguments(job.network) if job.place == "sandbox" else []
    return [*map(str, numbers), job.command, *door]


def _since(began: float) -> int:
    return int((time.monotonic() - began) * 1000)
