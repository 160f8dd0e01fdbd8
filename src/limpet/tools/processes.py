"""Commands that go on in the background: kept, bounded, told of, and ended with their turn or with us.

A command starts in the foreground of its call. When it outlasts that, it gets a number in its conversation and stays
here, with its output in a bounded buffer, until its end has been told and newer ones have taken its place.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from msgspec import Struct, structs

from limpet.errors import LimpetError, ToolError
from limpet.sandbox.run import Command, Finished, Job, Sandbox
from limpet.sandbox.survivors import MARK, Trace, birth, end_survivors
from limpet.store.processes import Begun, ProcessRow, StoredProcesses
from limpet.tools.newcomers import absent, put_away
from limpet.tools.output import Collector, cut_off, to_text
from limpet.types.ids import new_id
from limpet.types.ports import Redactor, ToolContext

log = logging.getLogger(__name__)

LIVE = 8
"""Commands of one conversation that may run in the background at once; three times that in all."""
KEPT = 16
"""Ended commands of a conversation whose output is kept."""
KEPT_OUTPUT = 256 * 1024
"""Bytes kept of the output of one that has ended."""
TOLD_LINES = 5
LOST = Finished(None, killed=True)
WITH_US = "ended with the agent"
UNKNOWN = "ended with the agent, which was killed: outcome unknown"


class Told(Struct, frozen=True):
    """The end of a command in the background, as the one who wakes its conversation needs it.

    `wanted`: it was killed on somebody's word.
    """

    key: str
    name: str
    outcome: str
    wanted: bool


class Process:
    """A started command with its output. `number` is 0 while it is in the foreground; `row` names its record."""

    def __init__(self, job: Job, context: ToolContext, *, key: str, fallback: str) -> None:
        self.job = job
        self.key = key
        self.session, self.turn = context.session, context.turn
        self.redactor: Redactor = context.redactor
        self.output = Collector(job.limits.output)
        self.fallback = fallback
        self.number = 0
        self.row = ""
        self.mark = ""
        self.ending = ""
        self.fresh = asyncio.Event()
        self.gone = asyncio.Event()
        self.listener: Callable[[bytes], None] | None = None
        self.command: Command  # once it is started
        self.absent: frozenset[str] = frozenset()
        self.moved: list[str] = []
        self._place = 0

    @property
    def over(self) -> bool:
        """Whether none of its processes is left, and that is on record."""
        return self.gone.is_set()

    @property
    def finished(self) -> Finished | None:
        """How the command itself ended; None while it runs."""
        return LOST if self.command.lost else self.command.finished

    @property
    def has_news(self) -> bool:
        return self.output.total > self._place

    @property
    def name(self) -> str:
        return f"p{self.number}"

    @property
    def line(self) -> str:
        """The command in one line for people and models, secrets redacted."""
        return self.redactor.redact(" ".join(self.job.command.split()))[:120]

    def take(self, data: bytes) -> None:
        """The command has written something."""
        self.output.add(data)
        self.fresh.set()
        if self.listener is not None:
            self.listener(data)

    def news(self) -> str:
        """What was written since this was called last; while it runs without a character or line end cut in two."""
        first, left_out, last = self.output.since(self._place)
        held = 0 if self.over else cut_off(last or first)
        self._place = self.output.total - held
        if held:
            first, last = (first, last[:-held]) if last else (first[:-held], last)
        return self._text(first, left_out, last)

    def whole(self) -> str:
        """All output that is kept."""
        return self._text(*self.output.since(0))

    def _text(self, first: bytes, left_out: int, last: bytes) -> str:
        if not left_out:
            return to_text(first + last, fallback=self.fallback)
        note = f"\n[... {left_out:,} bytes of output not kept ...]\n"
        return to_text(first, fallback=self.fallback) + note + to_text(last, fallback=self.fallback)

    def outcome(self) -> str:
        """How it ended, in the words of a note: `ended with exit code 1 after 84 s`."""
        return f"{self.ending or self._end()} after {self.command.seconds:.0f} s"

    def _end(self) -> str:
        finished = self.finished
        if self.command.lost:
            return "could not be started, or was killed from outside,"
        how = "was killed" if finished is None or finished.killed else outcome(finished, self.job)[0]
        return f"ended with {how}" if how.startswith("exit code") else how

    def tail(self) -> str:
        """The last lines of its output, short enough for a note."""
        lines = [line[:200] for line in self.whole().rstrip().split("\n")[-TOLD_LINES:]]
        return self.redactor.redact("\n".join(lines))


def outcome(finished: Finished, job: Job) -> tuple[str, bool]:
    """How a command ended, in words, and whether that is a failure."""
    if finished.timed_out:
        return f"timed out after {job.timeout:g} s; it and its children were killed", True
    code = finished.exit_code
    by_signal = f" (signal {code - 128})" if code and 128 < code < 128 + 65 else ""
    how = "killed" if code is None else f"exit code {code}{by_signal}"
    if finished.limit == "memory":
        return f"{how}: it used over {job.limits.memory // 1024**2:,} MB of memory", True
    if finished.limit == "processes":
        return f"{how}: it had over {job.limits.processes} processes", True
    return how, code != 0


class Processes:
    """All commands of this agent. `records` makes them survive us in memory; `on_end` hears of each end."""

    def __init__(
        self,
        sandbox: Sandbox,
        records: StoredProcesses | None = None,
        *,
        on_end: Callable[[Told], None] = lambda told: None,
    ) -> None:
        self.sandbox = sandbox
        self._records = records
        self._on_end = on_end
        self._all: list[Process] = []
        self._running: set[Process] = set()
        self._watchers: set[asyncio.Task[None]] = set()

    def key_of(self, context: ToolContext) -> str:
        """The conversation whose commands a call sees."""
        return self._records.key_of(context.session) if self._records else context.session

    def of(self, key: str) -> list[Process]:
        """The commands of a conversation in the background, those that ended included."""
        return [one for one in self._all if one.key == key]

    def find(self, key: str, name: str) -> Process | ProcessRow:
        """The command of that name; of an earlier life of the agent its record. Raises `ToolError`."""
        for one in self.of(key):
            if one.name == name:
                return one
        digits = name.removeprefix("p")
        if self._records and digits.isascii() and digits.isdigit() and len(digits) < 10:
            found = self._records.find(key, int(digits))
            if found is not None:
                return found
        names = ", ".join(one.name for one in self.of(key)) or "none"
        raise ToolError(f"there is no background command {name!r} in this conversation (there are: {names})")

    def has_room(self, key: str) -> bool:
        """Whether one more may go on in the background."""
        live = [one for one in self._all if not one.over]
        return len(live) < 3 * LIVE and sum(one.key == key for one in live) < LIVE

    async def start(self, job: Job, context: ToolContext, *, fallback: str = "") -> Process:
        """Start a command, in the foreground for now. Raises `SandboxError`."""
        mark = os.urandom(12).hex() if job.place == "host" and self._records else ""
        if mark:
            job = structs.replace(job, env={**job.env, MARK: mark})
        process = Process(job, context, key=self.key_of(context), fallback=fallback)
        process.mark = mark
        # What one that runs now may have made was not there either.
        beside = [other.absent for other in self._running if other.job.workspace == job.workspace]
        process.absent = absent(job).union(*beside) if job.place == "sandbox" else frozenset()
        self._running.add(process)
        try:
            process.command = await self.sandbox.start(job, process.take)
        except BaseException:
            self._running.discard(process)
            raise
        try:
            if mark and self._records:
                await self._records.begin(_begun(process))
        except BaseException:
            await self.give_up(process)
            raise
        return process

    async def settle(self, process: Process) -> None:
        """It has ended in the foreground."""
        self._put_away(process)
        process.command.running.mute()
        if process.row and self._records:
            await self._records.drop(process.row)

    def _put_away(self, process: Process) -> None:
        """Before it counts as over: until then what it has made is not there for those that start beside it."""
        process.moved = put_away(process.job, process.absent, key=process.row or process.name)
        self._running.discard(process)

    async def give_up(self, process: Process) -> None:
        """Kill what is still in the foreground: its call is over."""
        await process.command.kill()
        await _end_lost(process)
        await self.settle(process)

    async def to_background(self, process: Process) -> None:
        """It goes on without its call."""
        process.listener = None
        if self._records:
            process.number = await self._records.to_background(_begun(process))
        else:
            process.number = 1 + max((one.number for one in self.of(process.key)), default=0)
        self._all.append(process)
        watcher = asyncio.create_task(self._until_gone(process), name=f"background {process.name}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def kill(self, process: Process, *, why: str = "was killed") -> None:
        """End all processes of a command in the background; its end is on record when this returns."""
        if process.over:
            return
        process.ending = process.ending or why
        await process.command.kill()
        await process.gone.wait()

    async def told(self, process: Process) -> None:
        """The conversation has seen the end of it."""
        if process.over and process.row and self._records:
            await self._records.told(process.row)

    async def stop(self, turn: str) -> None:
        """The owner has stopped a turn: what it started goes with it."""
        started = [one for one in self._all if one.turn == turn and turn and not one.over]
        await asyncio.gather(*(self.kill(one, why="was killed when you were stopped,") for one in started))

    async def close(self) -> None:
        """We end, and so does everything that runs."""
        live = [one for one in self._all if not one.over]
        for one in live:
            log.warning("The background command %s (%s) %s.", one.name, one.line, WITH_US)
        await asyncio.gather(*(self.kill(one, why=WITH_US) for one in live))
        await asyncio.gather(*list(self._watchers))

    async def end_lost(self) -> None:
        """End what outlived an agent that was killed, and put on record that it did."""
        if self._records is None:
            return
        for row in self._records.left_by_dead():
            count = await asyncio.to_thread(end_survivors, Trace(row.pid, row.birth, row.mark))
            if count:
                log.warning("Ended %d processes that outlived a killed agent: %s", count, row.command)
            if row.number:
                await self._records.end(row.id, outcome=UNKNOWN, tail="")
            else:
                await self._records.drop(row.id)

    async def _until_gone(self, process: Process) -> None:
        """Wait for the end of a command, and record it."""
        await process.command.gone()
        how = process.outcome()
        try:
            await _end_lost(process)
            self._put_away(process)
            process.output.shrink(KEPT_OUTPUT)
            if self._records:
                # What strangers may have written is not told unasked, as words of ours.
                tail = "" if process.job.networked else process.tail()
                await self._records.end(process.row, outcome=how, tail=tail, wanted=bool(process.ending))
        except LimpetError:
            log.exception("The end of %s could not be recorded", process.name)
        finally:
            self._running.discard(process)
            process.gone.set()
            process.fresh.set()
        for old in [one for one in self.of(process.key) if one.over][:-KEPT]:
            self._all.remove(old)
        self._on_end(Told(process.key, process.name, how, wanted=bool(process.ending)))


async def _end_lost(process: Process) -> None:
    """End what a command on the host has left when nothing looks after it any more."""
    if process.command.lost and process.mark:
        await asyncio.to_thread(end_survivors, Trace(0, "", process.mark))


def _begun(process: Process) -> Begun:
    """What is recorded of it, under a name that it keeps."""
    process.row = process.row or new_id("c")
    pid = process.command.pid
    return Begun(process.row, process.session, process.line, pid, birth(pid), process.mark)
