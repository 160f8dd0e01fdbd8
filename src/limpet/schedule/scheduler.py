"""The scheduler: looks at the ledger when something is due or has ended, and sleeps in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from limpet.schedule import ledger
from limpet.schedule.ledger import ORDINARY, Special
from limpet.store import jobs, occurrences
from limpet.store.driver import Store
from limpet.store.nudge import Nudges
from limpet.store.sql import Connection
from limpet.types.job import JobRow
from limpet.types.ports import Clock

log = logging.getLogger(__name__)

AT_ONCE = 200
"""Jobs whose slots are entered in one go."""
LONGEST_SLEEP = 300.0
"""Seconds: the clock of the machine may be set meanwhile."""
AFTER_FAILURE = 5.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Enters, begins and settles what is due.

    `places` gives how many runs there may be at once, `poke` is told the session keys under which there is something to
    do, `special` is what Limpet's own jobs do otherwise, `rest` are the seconds after something unexpected.
    """

    store: Store
    nudges: Nudges
    clock: Clock
    places: Callable[[], int]
    poke: Callable[[str], None]
    special: Special = ORDINARY
    rest: float = AFTER_FAILURE

    async def run(self) -> None:
        """Until cancelled."""
        derived = False
        while True:
            try:
                if not derived:
                    await self.derive()
                    derived = True
                wake = await self.tick()
                pause = LONGEST_SLEEP if wake is None else min(LONGEST_SLEEP, (wake - self.clock.now()) / 1000)
            except Exception:  # a full disk, a fault of ours: without this task nothing would be on time any more
                log.exception("the schedule")
                await asyncio.sleep(self.rest)
                continue
            if pause > 0:
                await self.nudges.wait(pause)

    async def derive(self) -> None:
        """Make sure that the next slot of every job is what schedule and ledger say."""

        def look(connection: Connection) -> list[tuple[JobRow, int | None]]:
            return ledger.derived(connection, jobs.listed(connection, over=False))

        for row, due in self.store.read(look):
            log.info("job %s: its next slot is %s, not %s", row.job.name, due, row.due)
            await self.store.write(partial(jobs.advance, job=row.job.id, seen=row.due, due=due))

    async def tick(self) -> int | None:
        """Do all there is to do now; gives when there is something again (UTC ms), as far as that is known."""
        await self._settle()
        await self._enter()
        await self._begin()
        return self.store.read(self._wake)

    async def _settle(self) -> None:
        now = self.clock.now()
        for one in self.store.read(lambda connection: ledger.unsettled(connection, now=now)):
            await self.store.write(partial(ledger.settle, one=one, now=now))

    async def _enter(self) -> None:
        now = self.clock.now()
        for row in self.store.read(lambda connection: jobs.due(connection, now=now, limit=AT_ONCE)):
            found = ledger.judge(row, now)
            if found.missed:
                log.warning("job %s: missed %d, run %d", row.job.name, len(found.missed), len(found.run))
            refusal = self.store.read(partial(self.special.refusal, row=row)) if found.run else ""
            await self.store.write(partial(ledger.enter, found=found, now=now, refusal=refusal))
        for one in self.store.read(partial(self.special.stir, now=now)):
            await self.store.write(partial(occurrences.put, one=one))

    async def _begin(self) -> None:
        """Begin what waits, while there are places."""
        now = self.clock.now()
        free = self.places() - self.store.read(occurrences.count_running)
        while free > 0:
            waiting = self.store.read(partial(occurrences.waiting, now=now, limit=free))
            if not waiting:
                return
            for one in waiting:
                if key := await self.store.write(partial(ledger.claim, one=one, now=now, special=self.special)):
                    self.poke(key)
            free = self.places() - self.store.read(occurrences.count_running)

    def _wake(self, connection: Connection) -> int | None:
        free = self.places() > occurrences.count_running(connection)
        known = (jobs.next_due(connection), occurrences.wake(connection, waiting=free))
        return min((one for one in known if one is not None), default=None)
