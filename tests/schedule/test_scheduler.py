"""The scheduler's task: it goes on, whatever goes wrong, and is woken by what is new."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from limpet.schedule.desk import Timing
from limpet.schedule.ledger import Ordinary
from limpet.schedule.scheduler import Scheduler
from limpet.store.sql import Connection
from limpet.types.job import Occurrence
from tests.schedule.world import NoNudges, ms, world


@dataclass
class Broken(Ordinary):
    """Fails the first few times."""

    failures: int = 3

    def stir(self, connection: Connection, *, now: int) -> list[Occurrence]:
        if self.failures:
            self.failures -= 1
            raise ZeroDivisionError
        return []


def test_it_goes_on_after_what_nobody_has_expected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[str]:
        async with world(tmp_path, "2026-05-01T08:00Z") as here:
            job = await here.add(Timing(cron="0 9 * * *"))
            here.clock.at = ms("2026-05-01T09:00Z")
            begun = asyncio.Event()
            scheduler = Scheduler(
                here.store,
                NoNudges(),
                here.clock,
                places=lambda: 1,
                poke=lambda key: begun.set(),
                special=Broken(),
                rest=0.0,
            )
            task = asyncio.create_task(scheduler.run())
            await asyncio.wait_for(begun.wait(), 10)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return here.states(job)

    with caplog.at_level(logging.ERROR):
        assert asyncio.run(main()) == ["claimed"]
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError] * 3
