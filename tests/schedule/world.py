"""A world with a clock in a test's hands: the ledger over a real store, and somebody who plays the lanes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from limpet.schedule import desk
from limpet.schedule.desk import Maker, Timing, Wish
from limpet.schedule.ledger import ORDINARY, Special
from limpet.schedule.scheduler import Scheduler
from limpet.store import inbox, jobs, occurrences, peers, sessions, turns
from limpet.store.driver import Store, StoreSettings
from limpet.store.peers import Peer
from limpet.store.sql import Connection
from limpet.store.turns import TurnState
from limpet.types.ids import new_id
from limpet.types.job import Conduct, Job, JobAct, JobRow, Occurrence

T = TypeVar("T")
USUAL = Conduct()
OWNER = Peer(
    channel="telegram", account="main", id="1", role="owner", name="Ann", approved=1, by="cli", chat="1", seen=1
)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def ms(text: str) -> int:
    """UTC milliseconds of `2026-03-08T07:00Z`."""
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


class SetClock:
    """A `Clock` that is set, never slept on."""

    def __init__(self, start: int) -> None:
        self.at = start

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1000


class NoNudges:
    """Nobody is to be woken: the test drives."""

    def wake(self) -> None: ...

    async def wait(self, timeout: float) -> None:
        await asyncio.sleep(0)


class KilledError(Exception):
    """The process died here."""


@dataclass
class Mortal:
    """A store whose process may die before or after any commit: `fate` says so, given a number that counts up."""

    store: Store
    fate: Callable[[int], str] = lambda number: ""
    writes: int = 0

    def read(self, work: Callable[[Connection], T]) -> T:
        return self.store.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        self.writes += 1
        fate = self.fate(self.writes)
        if fate == "before":
            raise KilledError
        done = await self.store.write(work)
        if fate == "after":
            raise KilledError
        return done


@dataclass
class World:
    store: Mortal
    clock: SetClock
    places: int = 100
    poked: list[str] = field(default_factory=list[str])
    special: Special = ORDINARY

    def scheduler(self) -> Scheduler:
        """As after a start."""
        return Scheduler(
            self.store, NoNudges(), self.clock, places=lambda: self.places, poke=self.poked.append, special=self.special
        )

    async def add(
        self, when: Timing, *, name: str = "job", zone: str = "UTC", conduct: Conduct = USUAL, says: bool = False
    ) -> Job:
        wish = Wish("Do it", when, name=name, conduct=conduct, says=says)

        def work(connection: Connection) -> Job:
            change = desk.make(connection, wish, Maker("main", zone), now=self.clock.now())
            assert change.job is not None
            jobs.apply(connection, change)
            return change.job

        return await self.store.store.write(work)

    async def act(self, job: Job, act: JobAct) -> None:
        row = self.row(job)
        change = desk.change(row, act, now=self.clock.now())
        await self.store.store.write(lambda connection: jobs.apply(connection, change))

    def row(self, job: Job) -> JobRow:
        found = self.store.read(lambda connection: jobs.find(connection, job.id))
        assert found is not None
        return found

    def ledger(self, job: Job) -> list[Occurrence]:
        """Its rows, oldest first."""
        return self.store.read(lambda connection: occurrences.history(connection, job=job.id, limit=100_000))[::-1]

    def states(self, job: Job) -> list[str]:
        return [one.state for one in self.ledger(job)]

    async def begin(self, key: str) -> str:
        """A turn takes the oldest event that waits under a key; gives its name."""

        def work(connection: Connection) -> str:
            (row, *_) = inbox.queued(connection, key)
            session = sessions.open_live(connection, key, agent="main", now=self.clock.now())
            turn = new_id("t")
            turns.insert(connection, turn, session.id, now=self.clock.now())
            inbox.take(connection, row.id, turn=turn)
            return turn

        return await self.store.store.write(work)

    async def finish(self, turn: str, state: TurnState = "done", *, error: str = "") -> None:
        def work(connection: Connection) -> None:
            turns.end(connection, turn, state=state, now=self.clock.now(), error=error)
            inbox.settle_turn(connection, turn)

        await self.store.store.write(work)

    def waiting(self) -> list[str]:
        return self.store.read(inbox.keys_waiting)

    async def work(self, state: TurnState = "done", *, error: str = "") -> int:
        """Take and finish all that waits; how much that was."""
        count = 0
        while keys := self.waiting():
            for key in keys:
                await self.finish(await self.begin(key), state, error=error)
                count += 1
        return count

    async def to(self, moment: int | str, state: TurnState = "done") -> None:
        """Let the time come, with a scheduler that looks whenever it wants to and turns that take none."""
        end = ms(moment) if isinstance(moment, str) else moment
        scheduler = self.scheduler()
        await scheduler.derive()
        while True:
            wake = await scheduler.tick()
            if await self.work(state, error="it broke" if state == "failed" else ""):
                continue
            if wake is None or wake > end:
                break
            self.clock.at = max(self.clock.at, wake)
        self.clock.at = max(self.clock.at, end)

    async def has_owner(self) -> None:
        await self.store.store.write(lambda connection: peers.put(connection, OWNER))

    def told(self) -> list[str]:
        """The texts that are on their way."""
        found = self.store.read(lambda connection: connection.execute("SELECT text FROM outbox ORDER BY id").fetchall())
        return [str(text) for (text,) in found]


@asynccontextmanager
async def world(folder: Path, start: str, *, places: int = 100) -> AsyncGenerator[World]:
    store = Store.open(str(folder / "limpet.db"), process="test", settings=StoreSettings(durability="normal"))
    try:
        made = World(Mortal(store), SetClock(ms(start)), places)
        await made.has_owner()
        yield made
    finally:
        await store.close()
