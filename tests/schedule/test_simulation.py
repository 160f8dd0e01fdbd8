"""A long time with many jobs, restarts and kills: every slot is accounted for, and none runs twice."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from limpet.schedule import slots
from limpet.schedule.desk import Timing
from limpet.store import turns
from limpet.store.sql import Connection
from limpet.types.job import CatchUp, Conduct, Job
from tests.schedule.world import DAY, HOUR, KilledError, World, ms, world

START = "2026-01-01T00:00Z"
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago")
TIMES = (
    Timing(cron="30 2 * * *"),
    Timing(cron="0 9 * * 1-5"),
    Timing(cron="15 */6 * * *"),
    Timing(cron="0 4 1 * *"),
    Timing(every="7h"),
    Timing(every="1d"),
    Timing(at="2026-01-09 01:30"),
    Timing(at="2026-01-20"),
)
CATCH_UP: tuple[CatchUp, ...] = ("once", "skip", "all")


class Plan(Struct, frozen=True):
    """How long, how many jobs, how many kills, and the seed of all that is left to chance."""

    days: int
    jobs: int
    kills: int
    seed: int


class Life:
    """One world, lived through by a plan. The same seed lives the same life."""

    def __init__(self, here: World, plan: Plan) -> None:
        self.here = here
        self.plan = plan
        self.chance = random.Random(plan.seed)
        self.running: dict[str, str] = {}
        self.kills = 0
        self.failing = 0.1

    async def live(self) -> list[Job]:
        made = [await self._job(number) for number in range(self.plan.jobs)]
        end = ms(START) + self.plan.days * DAY
        self.here.store.fate = self._fate
        while self.here.clock.at < end:
            try:
                await self._run(end)
            except KilledError:
                if self.chance.random() < 0.3:
                    self.here.clock.at += self.chance.randrange(12 * HOUR)
        self.here.store.fate = lambda number: ""
        self.failing = 0.0
        await self._run(end + DAY)
        return made

    async def _job(self, number: int) -> Job:
        conduct = Conduct(catch_up=CATCH_UP[number % 3], overlap="queue" if number % 2 else "skip")
        timing = TIMES[number % len(TIMES)]
        return await self.here.add(timing, name=f"job {number}", zone=ZONES[number % len(ZONES)], conduct=conduct)

    def _fate(self, number: int) -> str:
        """About as many kills as planned, spread over the whole time, before and after commits."""
        passed = (self.here.clock.at - ms(START)) / (self.plan.days * DAY)
        if self.kills >= self.plan.kills * passed or self.chance.random() < 0.5:
            return ""
        self.kills += 1
        return self.chance.choice(("before", "after"))

    async def _run(self, end: int) -> None:
        """From a start on: turns begin, and end when they end, whoever looks."""
        scheduler = self.here.scheduler()
        await scheduler.derive()
        while True:
            wake = await scheduler.tick()
            if await self._turns(over=wake is None or wake > end):
                continue
            if wake is None or wake > end:
                self.here.clock.at = max(self.here.clock.at, end)
                return
            self.here.clock.at = max(self.here.clock.at, wake)

    async def _turns(self, *, over: bool) -> bool:
        """Begin and end some turns; whether anything happened."""
        ended = [key for key in self.running if over or self.chance.random() < 0.8]
        for key in ended:
            fails = self.chance.random() < self.failing
            await self.here.finish(self.running.pop(key), "failed" if fails else "done", error="it broke")
        begun = [key for key in self.here.waiting() if key not in self.running]
        for key in begun:
            self.running[key] = await self.here.begin(key)
        return bool(ended or begun)


def accounted(here: World, job: Job, end: int) -> None:
    """Every slot up to `end` is in exactly one row, which has an end and, unless it is done, a reason."""
    row = here.row(job)
    expected = slots.upto(job.schedule, row.created, end if row.state != "disabled" else here.ledger(job)[-1].upto)
    covered: Counter[int] = Counter()
    for one in here.ledger(job):
        assert one.state in ("done", "failed", "missed", "skipped", "interrupted"), one
        assert one.state == "done" or one.reason
        within = [at for at in expected if one.due <= at <= one.upto] if one.count > 1 else [one.due]
        assert len(within) == one.count
        covered.update(within)
    assert sorted(covered) == expected
    assert set(covered.values()) <= {1}


def runs(connection: Connection) -> Counter[str]:
    """How often each occurrence was done, by the event that began its turn."""
    rows = connection.execute(
        "SELECT event FROM inbox JOIN turns ON turns.id = inbox.turn WHERE turns.state = 'done' AND event LIKE 'cron:%'"
    )
    return Counter(str(event).rpartition(":")[0] for (event,) in rows)


def lived(folder: Path, plan: Plan) -> None:
    async def main() -> None:
        async with world(folder, START, places=8) as here:
            life = Life(here, plan)
            made = await life.live()
            for job in made:
                accounted(here, job, here.clock.at)
            assert set(here.store.read(runs).values()) <= {1}
            assert not here.store.read(turns.all_live)
            assert life.kills >= plan.kills * 0.8

    asyncio.run(main())


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1_000_000))
def test_a_fortnight_with_kills(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    lived(tmp_path_factory.mktemp("life"), Plan(days=14, jobs=8, kills=20, seed=seed))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_year_of_fifty_jobs_in_five_zones_with_two_hundred_kills(tmp_path: Path) -> None:
    lived(tmp_path, Plan(days=365, jobs=50, kills=200, seed=8))
