"""The heartbeat's place among the jobs: its name is its own, and it is as the settings say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.config.schema import HeartbeatSettings
from limpet.errors import InputError
from limpet.schedule import desk, heartbeat
from limpet.schedule.desk import Timing
from limpet.store import jobs
from tests.schedule.world import World, ms, world

WANTED = heartbeat.job(HeartbeatSettings(), agent="main", zone="UTC")


def within(folder: Path, work: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with world(folder, "2026-05-01T08:00Z") as here:
            await work(here)

    asyncio.run(main())


async def sync(here: World, *, on: bool = True) -> None:
    now = here.clock.now()
    await here.store.store.write(lambda connection: heartbeat.sync(connection, WANTED, on=on, now=now))


@pytest.mark.parametrize("name", ["heartbeat", "Heartbeat", " HEARTBEAT "])
def test_its_name_is_refused_to_others(tmp_path: Path, name: str) -> None:
    async def work(here: World) -> None:
        with pytest.raises(InputError, match="kept for Limpet's own heartbeat"):
            await here.add(Timing(every="1h"), name=name)

    within(tmp_path, work)


def test_a_job_that_had_its_name_gets_another_and_keeps_its_place_in_time(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(Timing(every="1h"), name="mine")
        before = here.row(job)
        old = structs.replace(job, name="heartbeat")
        await here.store.store.write(lambda connection: jobs.rewrite(connection, old))
        await sync(here)
        row = here.row(job)
        assert row.job.name == row.job.mandate.name == "heartbeat-2"
        assert (row.due, row.since, row.state) == (before.due, before.since, before.state)
        assert here.row(WANTED).due == ms("2026-05-01T08:30Z")

    within(tmp_path, work)


def test_it_can_be_paused_and_neither_removed_nor_edited(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        await sync(here)
        row, now = here.row(WANTED), here.clock.now()
        with pytest.raises(InputError, match="cannot be removed"):
            desk.change(row, "remove", now=now)
        with pytest.raises(InputError, match="as the settings say"):
            desk.edited(row, desk.Wish("x", Timing()), None, zone="UTC", now=now)
        await here.act(WANTED, "pause")
        await sync(here)
        assert here.row(WANTED).state == "paused"

    within(tmp_path, work)


def test_it_goes_when_it_is_switched_off(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        await sync(here)
        await sync(here, on=False)
        assert not here.store.read(jobs.listed)

    within(tmp_path, work)
