"""Running commands: in the sandbox or on the host, with one end for all of their processes.

`Sandbox.run` returns when the command itself has ended; children it left in the background live on until they end,
`close` is called, or the agent dies.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import cached_property
from subprocess import DEVNULL

from limpet.errors import SandboxError
from limpet.sandbox import bubblewrap, cgroup
from limpet.sandbox.command import COLUMNS, ROWS, Child, Command, Finished, Job, Place
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import init_arguments
from limpet.sandbox.probe import SandboxReport, examine
from limpet.sandbox.running import Pipes, Running

__all__ = ["Child", "Command", "Finished", "Job", "Place", "Sandbox"]


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
        command = await self.start(job, on_output)
        ended = None
        try:
            ended = await command.wait()
        finally:
            if ended is None:
                await command.kill()
            command.running.mute()
        assert ended is not None
        return ended

    async def start(self, job: Job, on_output: Callable[[bytes], None]) -> Command:
        """Start `job`, which then runs by itself. Raises `SandboxError`."""
        return Command(await self._start(job, on_output), job)

    async def close(self) -> None:
        """End everything that still runs."""
        for running in list(self._running):
            await running.kill()

    async def _start(self, job: Job, on_output: Callable[[bytes], None]) -> Running:
        if job.place == "sandbox" and self.report.kind == "none":
            raise SandboxError(f"there is no sandbox here: {self.report.reason}", hint=self.report.remedy)
        group = _group(job.limits) if self._groups else None
        pipes = Pipes(reads=job.input == "pipe", terminal=job.input == "terminal")
        running: Running | None = None
        try:
            process = await asyncio.create_subprocess_exec(
                *(group.prefix() if group else ()),
                *self._outer(job),
                *_inner(job, pipes, watch_memory=group is None),
                stdin=pipes.input[0] if pipes.input else DEVNULL,
                stdout=pipes.output[1],
                stderr=pipes.output[1],
                pass_fds=pipes.passed,
                cwd=job.folder if job.place == "host" else "/",
                env={**job.env, **(job.network.env if job.place == "sandbox" else {})},
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


def _inner(job: Job, pipes: Pipes, *, watch_memory: bool) -> list[str]:
    """The arguments of the init. It watches the memory only where no control group counts it better."""
    limits, status, life = job.limits, pipes.status[1], pipes.life[0]
    numbers = (limits.memory if watch_memory else 0, limits.processes, limits.file_size)
    terminal = f"{pipes.terminal[1].fileno()}:{ROWS}:{COLUMNS}" if pipes.terminal else "-"
    door = init_arguments(job.network) if job.place == "sandbox" else []
    return [*(str(value) for value in (status, life, job.place, *numbers, terminal)), job.command, *door]
