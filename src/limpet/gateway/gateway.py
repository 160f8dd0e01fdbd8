"""The gateway: channels, lanes and delivery under one roof, from the start to the last flush."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

from limpet.assistant.commands import COMMANDS
from limpet.config.channels import ChannelSettings, GatewaySettings
from limpet.errors import ChannelError, ConfigError, LimpetError, UserError
from limpet.gateway.delivery import Delivery
from limpet.gateway.ground import Ground
from limpet.gateway.home import Notices
from limpet.gateway.intake import Intake
from limpet.gateway.lane import Lanes, Tidying
from limpet.gateway.live import Lives
from limpet.gateway.outside import Outside
from limpet.gateway.programs import Programs
from limpet.gateway.status import Snapshot, write_snapshot
from limpet.gateway.supervisor import Link
from limpet.gateway.watch import Watch
from limpet.types.channel import Channel, MenuEntry

log = logging.getLogger(__name__)

LOOK_AT_SETTINGS = 2.0
AT_MOST_EVERY = 0.01
SWEEP = 0.5
"""Seconds between two looks at what is to be delivered, at all sessions."""
FLUSH = 1.5
"""Seconds that deliveries have to finish at the end."""
STATUS_EVERY = 10.0
ONCE = 0.2
SERVER = ("server", "")
MENU = tuple(MenuEntry(one.name, one.summary) for one in COMMANDS.values())


class Opening(Protocol):
    """Called for the channels that are configured; provided by the composition root."""

    def configured(self) -> Mapping[tuple[str, str], ChannelSettings]:
        """Settings by kind and account, as they are now."""
        ...

    def open(self, kind: str, account: str) -> Channel:
        """Raises `ConfigError`, also when its library is not installed."""
        ...


class Gateway:
    """One gateway. `run` is its life."""

    def __init__(
        self, ground: Ground, channels: Opening, watch: Watch, *, status: str, restarting: asyncio.Event
    ) -> None:
        """`status` is the path of the file that says how it is; `restarting` is set when it is to begin anew."""
        self.restarting = restarting
        self.links: dict[tuple[str, str], Link] = {}
        self._ground = ground
        self._channels = channels
        self._status = status
        self._faults: dict[tuple[str, str], str] = {}
        self._tasks: dict[tuple[str, str], tuple[asyncio.Task[None], ...]] = {}
        self._lives = Lives(ground, self.links)
        self._notices = Notices(ground)
        self.lanes = Lanes(ground, self._lives, self._notices, most=lambda: self._settings.turns)
        self._delivery = Delivery(ground, self.links, self._lives, settings=lambda: self._settings.delivery)
        self._intake = Intake(ground, self.lanes, self._notices)
        self.outside = Outside(ground, self.lanes, self._notices)
        self.programs = Programs(ground, self.lanes, watch)
        self._watch = watch

    @property
    def wanted(self) -> tuple[tuple[str, str], ...]:
        """The channels that are switched on, by kind and account."""
        return tuple(name for name, one in self._channels.configured().items() if one.enabled)

    @property
    def _settings(self) -> GatewaySettings:
        return self._ground.agents.settings.gateway

    async def run(self, stop: asyncio.Event, *, once: bool = False) -> None:
        """Work until `stop` is set, then drain; with `once` until there is nothing left to do."""
        with self._watch.listening(self._lives.on_event):
            self._connect()
            tasks = self._ground.tasks
            beside = [
                tasks.start(self._see_to_it(), "sweep"),
                tasks.start(Tidying(self._ground, self.lanes).run(), "tidying"),
                tasks.start(self._tell_status(), "status"),
            ]
            try:
                await (self._until_idle() if once else self._until_told(stop))
            finally:
                await self._drain(beside)

    def _connect(self) -> None:
        """Open the channels that are configured, end those that are not any more or have changed."""
        wanted = {name: one for name, one in self._channels.configured().items() if one.enabled}
        for name, link in tuple(self.links.items()):
            if wanted.get(name) != link.settings:
                self._disconnect(name)
        self._faults = {name: fault for name, fault in self._faults.items() if name in wanted or name == SERVER}
        for name, settings in wanted.items():
            if name not in self.links:
                self._open(name, settings)

    def _open(self, name: tuple[str, str], settings: ChannelSettings) -> None:
        try:
            channel = self._channels.open(*name)
        except LimpetError as error:
            if self._faults.get(name) != str(error):
                log.error("channel %s: %s", ":".join(name), error.present())
            self._faults[name] = str(error)
            return
        except Exception as error:  # a fault of the adapter or its library: logged, told
            log.exception("channel %s", ":".join(name))
            self._faults[name] = f"{type(error).__name__}: {error}"
            return
        self._faults.pop(name, None)
        link = Link(channel, settings, desk=self._intake, clock=self._ground.clock)
        self.links[name] = link
        start = self._ground.tasks.start
        self._tasks[name] = start(link.run(), f"channel {':'.join(name)}"), start(self._offer(link), "menu")

    def _disconnect(self, name: tuple[str, str]) -> None:
        del self.links[name]
        for task in self._tasks.pop(name):
            task.cancel()

    async def _offer(self, link: Link) -> None:
        """Show the slash commands in the platform's menu, once it is connected."""
        await link.connected.wait()
        try:
            await link.channel.offer(MENU)
        except ChannelError as error:
            log.info("the menu of %s: %s", link.channel.name, error)

    async def _see_to_it(self) -> None:
        """Find what there is to do whenever there may be something, until cancelled.

        What this process takes in it sees to at once; here is the rest: what other processes, decisions and ended
        turns leave to be done.
        """
        swept = looked = float("-inf")
        while True:
            now = self._ground.clock.monotonic()
            try:
                self._delivery.sweep()
                if now - swept >= SWEEP:
                    swept = now
                    self.lanes.sweep()
                if now - looked >= LOOK_AT_SETTINGS:
                    looked = now
                    await self._look_at_settings()
                    await self._notices.report()
            except Exception:  # a full disk, say: without this task nothing would be delivered any more
                log.exception("looking for what there is to do")
                await asyncio.sleep(SWEEP)
            await asyncio.sleep(AT_MOST_EVERY)
            await self._ground.nudges.wait(LOOK_AT_SETTINGS)

    async def _look_at_settings(self) -> None:
        try:
            if await self._ground.agents.refresh():
                self._connect()
        except ConfigError as error:
            log.error("the settings have changed and cannot be used; the old ones stay: %s", error.present())
            await self._notices.tell_owner(
                f"The settings have changed and cannot be used, so the old ones stay: {error.present()}",
                key=f"settings:{error}",
            )

    async def _tell_status(self) -> None:
        while True:
            try:
                write_snapshot(self._status, self.snapshot())
            except OSError as error:  # the disk is full: said by others
                log.warning("the status file cannot be written: %s", error.strerror)
            await asyncio.sleep(STATUS_EVERY if all(map(_is_up, self.links.values())) else 1.0)

    def note_fault(self, name: tuple[str, str], fault: str) -> None:
        """Something that belongs to the gateway cannot be opened; `limpet status` says so."""
        self._faults[name] = fault

    def snapshot(self) -> Snapshot:
        """How it is right now."""
        return Snapshot(
            owner=self._ground.owner.name,
            at=self._ground.clock.now(),
            channels=tuple(link.health for link in self.links.values()),
            faults=tuple((*name, fault) for name, fault in self._faults.items()),
            running=self.lanes.running,
        )

    async def _until_told(self, stop: asyncio.Event) -> None:
        """Until it is to end, or to begin anew."""
        waits = [asyncio.ensure_future(event.wait()) for event in (stop, self.restarting)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _until_idle(self) -> None:
        """Until nothing is running, waiting or being delivered."""
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(ONCE)
            quiet = 0 if self.lanes.running or self._delivery.busy else quiet + 1

    async def _drain(self, beside: list[asyncio.Task[None]]) -> None:
        """Take nothing more, finish or park turns, deliver what is ready."""
        receiving = [task for tasks in self._tasks.values() for task in tasks]
        sweep, *others = beside
        for task in others:
            task.cancel()
        await self.lanes.drain(self._settings.drain)
        sweep.cancel()
        self._delivery.sweep()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH):
                while self._delivery.busy:
                    await asyncio.sleep(0.05)
        for task in receiving:
            task.cancel()
        await self._ground.tasks.close()
        write_snapshot(self._status, None)


def _is_up(link: Link) -> bool:
    return link.connected.is_set()


@contextmanager
def only_one(run: str) -> Generator[None]:
    """One gateway to a home. `run` is the folder of its locks. Raises `UserError` that names the other."""
    fd = os.open(os.path.join(run, "gateway.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            raise UserError(
                f"A gateway runs already for this home (process {other or 'unknown'}).",
                hint="`limpet status` shows how it is. To have two, give each a home of its own (LIMPET_HOME).",
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(fd)
