"""Cases of schedules: faults that people reported of systems like this one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.config.schema import HeartbeatSettings
from limpet.errors import InputError
from limpet.schedule import heartbeat, slots, when
from limpet.schedule.desk import Timing
from limpet.store import occurrences
from limpet.types.job import Conduct, ScheduleKind
from tests.schedule.world import KilledError, World, ms, world

NIGHTLY = Timing(cron="0 22 * * *")
BEATS = HeartbeatSettings(active="08:00-23:00")


def lived(folder: Path, start: str, work: Callable[[World], Awaitable[None]], *, places: int = 100) -> None:
    async def main() -> None:
        async with world(folder, start, places=places) as here:
            await work(here)

    asyncio.run(main())


@pytest.mark.parametrize("restart", ["2026-03-08T06:59Z", "2026-03-08T07:01Z", ""])
def test_c33_a_time_in_the_gap_of_the_clocks_runs_at_the_first_valid_instant(tmp_path: Path, restart: str) -> None:
    async def work(here: World) -> None:
        job = await here.add(Timing(cron="30 2 * * *"), zone="America/New_York")
        if restart:
            await here.to(restart)
        await here.to("2026-03-10T12:00Z")
        expected = [ms("2026-03-08T07:00Z"), ms("2026-03-09T06:30Z"), ms("2026-03-10T06:30Z")]
        assert [one.due for one in here.ledger(job)] == expected
        assert [one.begun for one in here.ledger(job)] == expected

    lived(tmp_path, "2026-03-07T12:00Z", work)


@pytest.mark.parametrize(
    ("kind", "said", "zone", "now", "expected"),
    [
        ("cron", "30 8 * * *", "America/Vancouver", "2026-02-15T00:00Z", "2026-02-15T16:30Z"),
        ("at", "07:26", "Asia/Ho_Chi_Minh", "2026-02-09T12:26Z", "2026-02-10T00:26Z"),
        ("at", "2027-03-23", "Asia/Shanghai", "2026-02-09T12:26Z", "2027-03-22T16:00Z"),
    ],
)
def test_c35_local_times_are_those_of_the_user(
    kind: ScheduleKind, said: str, zone: str, now: str, expected: str
) -> None:
    assert slots.after(when.schedule(kind, said, zone=zone, now=ms(now)), ms(now)) == ms(expected)


def test_c35_d_a_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        with pytest.raises(InputError, match="Mars/Base"):
            await here.add(Timing(at="7:30", zone="Mars/Base"))

    lived(tmp_path, "2026-02-09T12:26Z", work)


def test_c36_a_a_restart_after_a_run_repeats_nothing(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(NIGHTLY, zone="America/Santiago")
        await here.to("2026-03-11T01:00Z")
        await here.to("2026-03-11T01:30Z")
        assert here.states(job) == ["done"]
        assert here.row(job).due == ms("2026-03-12T01:00Z")

    lived(tmp_path, "2026-03-10T12:00Z", work)


def test_c36_b_a_run_killed_twice_is_one_interrupted_record(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(NIGHTLY, zone="America/Santiago")
        here.clock.at = ms("2026-03-11T01:00Z")
        await here.scheduler().tick()
        turn = await here.begin(f"cron:{job.id}")
        for _ in range(2):  # starts after kills: the turn is found as it was, and goes on
            await here.scheduler().derive()
            await here.scheduler().tick()
            assert here.states(job) == ["started"]
        await here.finish(turn, "interrupted", error="I crashed twice in this run, and have given it up.")
        await here.scheduler().tick()
        (one,) = here.ledger(job)
        assert (one.state, one.attempt) == ("interrupted", 1)
        assert "was interrupted" in here.told()[0]

    lived(tmp_path, "2026-03-10T12:00Z", work)


@pytest.mark.parametrize("fate", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2])
def test_c36_c_a_kill_at_any_commit_loses_no_slot(tmp_path: Path, fate: str, commit: int) -> None:
    async def work(here: World) -> None:
        job = await here.add(NIGHTLY, zone="America/Santiago")
        here.clock.at = ms("2026-03-11T01:00Z")
        here.store.fate = lambda number: fate if number == commit else ""
        with pytest.raises(KilledError):
            await here.scheduler().tick()
        await here.to("2026-03-11T01:05Z")
        assert here.states(job) == ["done"]
        assert here.ledger(job)[0].attempt == 1

    lived(tmp_path, "2026-03-10T12:00Z", work)


def test_c37_what_was_missed_while_nothing_ran(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        daily = Timing(cron="0 9 * * *")
        late = await here.add(daily, name="a")
        skipped = await here.add(daily, name="b", conduct=Conduct(catch_up="skip"))
        often = await here.add(Timing(cron="*/10 * * * *"), name="c")
        once = await here.add(Timing(at="2026-05-02 09:00"), name="d")
        early = await here.add(Timing(cron="0 4 * * *"), name="e")
        await here.to("2026-05-02T08:00Z")
        runs = len(here.ledger(often))
        here.clock.at = ms("2026-05-02T12:30Z")
        await here.to("2026-05-02T12:30Z")
        assert here.ledger(late)[-1].reason.startswith("late, +3 h 30 min")
        assert here.ledger(skipped)[-1].state == "missed"
        assert here.row(skipped).due == ms("2026-05-03T09:00Z")
        assert [one.state for one in here.ledger(often)[runs:]] == ["missed", "done"]
        assert here.states(once) == ["done"]
        assert here.row(once).state == "over"
        assert here.row(early).due == ms("2026-05-03T04:00Z")

    lived(tmp_path, "2026-05-02T03:00Z", work)


def test_c37_at_a_start_at_most_so_many_run_at_once(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        for number in range(5):
            await here.add(Timing(cron="0 9 * * *"), name=f"job {number}")
        here.clock.at = ms("2026-05-02T12:30Z")
        scheduler = here.scheduler()
        await scheduler.tick()
        assert here.store.read(occurrences.count_running) == 2
        assert await here.work() == 2

    lived(tmp_path, "2026-05-02T08:00Z", work, places=2)


def test_c39_b_the_grid_is_that_of_the_wall_clock() -> None:
    wanted = heartbeat.job(structs.replace(BEATS, minutes=60), agent="main", zone="Asia/Kathmandu")
    assert slots.after(wanted.schedule, ms("2026-05-01T00:00Z")) == ms("2026-05-01T00:15Z")
