"""The event folder: a JSON file that is dropped there becomes one row of the database, and is then moved to `done/`.

For scripts without HTTP. A file is known by its content, name and time, so that a kill between the row and the move
does not make two of it. What cannot be used is moved to `failed/` with the reason beside it, and the owner is told.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from limpet.errors import InputError, LimpetError, ToolError
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.outside import Nudge, Outside, Run, enclosed_payload
from limpet.store import jobs
from limpet.store.sql import Connection
from limpet.types.envelope import Trust
from limpet.types.job import JobChange

log = logging.getLogger(__name__)

LOOK = 1.0
"""Seconds between two looks."""
SETTLED = 5.0
"""Seconds after its last change from which on a file that cannot be read is taken for broken, not for half-written."""
LATER = 60.0
"""Seconds until a file is tried again that could not be taken right now."""
LARGEST = 262_144
KEPT = {"done": 7 * 86_400, "failed": 30 * 86_400}
"""Seconds for which files are kept, by folder."""
MOST = 1_000
"""Files of each that are kept."""
SWEPT = 3_600.0
HEAD = "[The file {name} in the event folder asks for this.]"


class EventFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What a file says. `text` and `message` are the same. With a time it is a job.

    `remind` is delivered word for word. `untrusted`: the words are a stranger's. `timeout` is seconds.
    """

    kind: Literal["wake", "agent", "remind"]
    text: Annotated[str, Meta(max_length=100_000)] = ""
    message: Annotated[str, Meta(max_length=100_000)] = ""
    name: Annotated[str, Meta(max_length=60)] = ""
    agent: str = "main"
    mode: Literal["now", "next-heartbeat"] = "now"
    session: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "isolated"
    deliver: bool = True
    to: str = ""
    model: str = ""
    thinking: Literal["", "off", "low", "medium", "high"] = ""
    timeout: Annotated[float, Meta(gt=0, le=86_400)] | None = None
    at: str = ""
    every: str = ""
    cron: str = ""
    zone: str = ""
    untrusted: bool = False

    @property
    def said(self) -> str:
        return self.text or self.message

    @property
    def is_timed(self) -> bool:
        return bool(self.at or self.every or self.cron)


Planner = Callable[[Connection, EventFile, str], JobChange]
"""Makes the job, of this id, that a file wants; provided by the composition root. Raises `InputError`, `ToolError`."""


class Found(Struct, frozen=True):
    """A file as it lay there. `event` names it for good; `fault` says why it is not used, `young` that it may be half
    of one."""

    path: str
    event: str = ""
    data: bytes = b""
    trust: Trust = "owner"
    mark: tuple[int, int] = (0, 0)
    fault: str = ""
    young: bool = False

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


class EventFolder:
    """Takes the files of the folder `root`."""

    def __init__(self, root: str, ground: Ground, outside: Outside, *, notices: Notices, plan: Planner) -> None:
        self._root = root
        self._ground = ground
        self._outside = outside
        self._notices = notices
        self._plan = plan
        self._later: dict[str, float] = {}

    async def run(self) -> None:
        """Until cancelled."""
        swept = float("-inf")
        while True:
            now = self._ground.clock.monotonic()
            try:
                if now - swept >= SWEPT:
                    swept = now
                    await asyncio.to_thread(prepare, self._root)
                await self.look()
            except (LimpetError, OSError) as error:
                log.warning("the event folder %s: %s", self._root, error)
                await asyncio.sleep(LATER)
            await asyncio.sleep(LOOK)

    async def look(self) -> int:
        """Take all that lies there; gives how many files were."""
        taken, now = 0, self._ground.clock.monotonic()
        for path in await asyncio.to_thread(listed, self._root):
            if self._later.get(path, now) <= now:
                taken += await self._take(await asyncio.to_thread(read, path))
        return taken

    async def _take(self, found: Found) -> bool:
        """Do what a file wants, and put it away; False: it stays for now."""
        if found.fault:
            return await self._refuse(found, found.fault)
        try:
            wanted = msgspec.json.decode(found.data, type=EventFile)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            return not found.young and await self._refuse(found, f"it cannot be read: {error}")
        try:
            await self._enter(wanted, found)
        except (InputError, ToolError) as error:
            return await self._refuse(found, error.present())
        except LimpetError as error:
            if found.path not in self._later:
                log.warning("the file %s cannot be taken now: %s", found.name, error)
            self._later[found.path] = self._ground.clock.monotonic() + LATER
            return False
        self._later.pop(found.path, None)
        await asyncio.to_thread(put_away, found, "done")
        return True

    async def _enter(self, wanted: EventFile, found: Found) -> None:
        """Make the one row of a file. Raises `LimpetError`."""
        if not wanted.said.strip() or (wanted.text and wanted.message):
            raise InputError("It needs either `text` or `message`.")
        if wanted.agent not in self._outside.agents:
            raise InputError(
                f"There is no agent {wanted.agent!r}.", hint=f"There are: {', '.join(self._outside.agents)}."
            )
        trust: Trust = "external" if wanted.untrusted else found.trust
        if wanted.is_timed:
            await self._job(wanted, found, trust)
        elif wanted.kind == "remind":
            raise InputError("A reminder needs a time: `at`, `every` or `cron`.")
        elif wanted.kind == "wake":
            await self._outside.wake(
                Nudge(
                    f"file:{found.event}",
                    f"event file {found.name}",
                    wanted.said,
                    agent=wanted.agent,
                    trust=trust,
                    soon=wanted.mode == "now",
                )
            )
        else:
            await self._agent(wanted, found, trust)

    async def _agent(self, wanted: EventFile, found: Found, trust: Trust) -> None:
        if wanted.deliver and wanted.to and (why := self._outside.knows(wanted.to)):
            raise InputError(why)
        said = wanted.said if trust == "owner" else enclosed_payload(wanted.said)
        await self._outside.run(
            Run(
                hook="file",
                event=found.event,
                text=f"{HEAD.format(name=found.name)}\n{said}",
                agent=wanted.agent,
                session="" if wanted.session == "isolated" else wanted.session,
                trust=trust,
                sender=f"the file {found.name}",
                deliver=wanted.deliver,
                to=wanted.to,
                model=wanted.model,
                thinking=wanted.thinking,
                minutes=(wanted.timeout or 0.0) / 60,
            )
        )

    async def _job(self, wanted: EventFile, found: Found, trust: Trust) -> None:
        if wanted.kind == "wake" or trust != "owner":
            raise InputError("Only `agent` and `remind` can have a time, and only in a file that is yours alone.")
        job = f"j{hashlib.sha256(found.event.encode()).hexdigest()[:22]}"

        def work(connection: Connection) -> None:
            if jobs.find(connection, job) is None:
                jobs.apply(connection, self._plan(connection, wanted, job))

        await self._ground.store.write(work)
        self._ground.nudges.wake()

    async def _refuse(self, found: Found, reason: str) -> bool:
        """Put a file that cannot be used aside, with the reason; its owner is told once."""
        log.warning("the event file %s is not used: %s", found.name, reason)
        await asyncio.to_thread(put_away, found, "failed", reason)
        text = f"The file {found.name} in the event folder is not used: {reason}\nIt is in {self._root}/failed."
        await self._notices.tell_owner(text, key=f"file:{found.event or found.name}")
        return True


def prepare(root: str) -> None:
    """Have the folders be there, for their owner alone, and without what has been kept long enough."""
    for folder in ("", *KEPT):
        os.makedirs(os.path.join(root, folder), mode=0o700, exist_ok=True)
    for folder, seconds in KEPT.items():
        with os.scandir(os.path.join(root, folder)) as entries:
            files = sorted(entries, key=lambda one: one.name, reverse=True)
        for number, entry in enumerate(files):
            if number >= MOST or entry.stat(follow_symlinks=False).st_mtime < time.time() - seconds:
                os.unlink(entry.path)


def listed(root: str) -> list[str]:
    """The paths of the files to look at, by name."""
    with os.scandir(root) as entries:
        files = [one for one in entries if not one.is_dir(follow_symlinks=False)]
    return sorted(one.path for one in files if one.name.endswith(".json") and not one.name.startswith("."))


def read(path: str) -> Found:
    """A file, if it is one that may be used; never follows a link, never waits for a pipe."""
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Found(path, young=True)
    except OSError as error:
        linked = os.path.islink(path)
        return Found(path, fault="it is a link." if linked else f"it cannot be opened: {error.strerror}.")
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        mark = (status.st_ino, status.st_mtime_ns)
        if fault := _unfit(status):
            return Found(path, mark=mark, fault=fault)
        data = file.read(LARGEST + 1)
    digest = hashlib.sha256(data).hexdigest()[:32]
    open_to_all = (status.st_mode | os.stat(os.path.dirname(path)).st_mode) & stat.S_IWOTH
    return Found(
        path,
        event=f"{name}:{status.st_mtime_ns}:{digest}",
        data=data,
        trust="external" if open_to_all else "owner",
        mark=mark,
        young=time.time() - status.st_mtime < SETTLED,
    )


def _unfit(status: os.stat_result) -> str:
    if not stat.S_ISREG(status.st_mode):
        return "it is no ordinary file."
    if status.st_uid != os.geteuid():
        return "it belongs to somebody else."
    if status.st_size > LARGEST:
        return f"it has {status.st_size:,} bytes; at most {LARGEST:,} are taken."
    return ""


def put_away(found: Found, folder: str, reason: str = "") -> None:
    """Move a file to the `folder` beside it, unless another one lies in its place by now: that is looked at next."""
    try:
        status = os.lstat(found.path)
    except FileNotFoundError:
        return
    if found.mark != (0, 0) and found.mark != (status.st_ino, status.st_mtime_ns):
        return
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    target = os.path.join(os.path.dirname(found.path), folder, f"{stamp}-{status.st_ino}-{found.name}")
    os.rename(found.path, target)
    if not stat.S_ISLNK(status.st_mode) and status.st_uid == os.geteuid():
        os.utime(target)  # from now on it is kept for so long
    if reason:
        with open(f"{target}.reason.txt", "w", encoding="utf-8", errors="replace") as file:
            file.write(f"{reason}\n")
