"""The ledger: each slot is entered once, runs once, and ends with one outcome and its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest

from limpet.schedule.desk import Timing
from limpet.store import jobs, occurrences
from limpet.types.job import Conduct
from tests.schedule.world import DAY, HOUR, MINUTE, World, ms, world

DAILY = Timing(cron="0 9 * * *")
START = "2026-05-01T08:00Z"


def within(folder: Path, work: Callable[[World], Awaitable[None]], *, start: str = START, places: int = 100) -> None:
    async def main() -> None:
        async with world(folder, start, places=places) as here:
            await work(here)

    asyncio.run(main())


def test_a_slot_is_claimed_with_its_event_started_with_its_turn_and_done_with_its_end(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        here.clock.at = ms("2026-05-01T09:00Z")
        scheduler = here.scheduler()
        await scheduler.tick()
        assert here.states(job) == ["claimed"]
        assert here.poked == [f"cron:{job.id}"]
        turn = await here.begin(f"cron:{job.id}")
        await scheduler.tick()
        (one,) = here.ledger(job)
        assert (one.state, one.turn) == ("started", turn)
        await here.finish(turn)
        wake = await scheduler.tick()
        assert here.states(job) == ["done"]
        assert wake == ms("2026-05-02T09:00Z")

    within(tmp_path, work)


def test_looking_again_changes_nothing(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        await here.to("2026-05-01T09:00Z")
        before, writes = here.ledger(job), here.store.writes
        await here.to("2026-05-01T20:00Z")
        assert here.ledger(job) == before
        assert here.store.writes == writes

    within(tmp_path, work)


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("once", ["missed", "done"]), ("skip", ["missed"]), ("all", ["done"] * 4)],
)
def test_what_was_missed_while_nothing_ran(tmp_path: Path, catch_up: str, expected: list[str]) -> None:
    async def work(here: World) -> None:
        conduct = Conduct(catch_up=next(one for one in ("once", "skip", "all") if one == catch_up), grace=2 * DAY)
        job = await here.add(Timing(every="1h"), conduct=conduct)
        here.clock.at = ms("2026-05-01T12:30Z")
        await here.to("2026-05-01T12:40Z")
        assert here.states(job) == expected
        assert sum(one.count for one in here.ledger(job)) == 4

    within(tmp_path, work)


def test_a_slot_beyond_its_grace_is_missed_with_the_reason(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY, conduct=Conduct(grace=HOUR))
        here.clock.at = ms("2026-05-01T11:00Z")
        await here.to("2026-05-01T11:00Z")
        (one,) = here.ledger(job)
        assert one.state == "missed"
        assert "Fri 2026-05-01 09:00 UTC" in one.reason

    within(tmp_path, work)


@pytest.mark.parametrize(("overlap", "expected"), [("skip", ["started", "skipped"]), ("queue", ["started", "claimed"])])
def test_overlap(tmp_path: Path, overlap: str, expected: list[str]) -> None:
    async def work(here: World) -> None:
        conduct = Conduct(overlap="skip" if overlap == "skip" else "queue", timeout=DAY)
        job = await here.add(Timing(every="1h"), conduct=conduct)
        scheduler = here.scheduler()
        here.clock.at = ms("2026-05-01T09:00Z")
        await scheduler.tick()
        await here.begin(f"cron:{job.id}")
        here.clock.at = ms("2026-05-01T10:00Z")
        await scheduler.tick()
        assert here.states(job) == expected

    within(tmp_path, work)


def test_failed_attempts_follow_the_backoff_and_then_the_owner_is_told_once(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        scheduler, begun = here.scheduler(), list[int]()
        here.clock.at = ms("2026-05-01T09:00Z")
        for _ in range(4):
            wake = await scheduler.tick()
            begun.append(here.clock.at)
            await here.work("failed", error="it broke")
            wake = await scheduler.tick()
            assert wake is not None
            here.clock.at = wake
        assert [after - before for before, after in pairwise(begun)] == [30_000, MINUTE, 5 * MINUTE]
        (one,) = here.ledger(job)
        assert (one.state, one.attempt, one.reason) == ("failed", 4, "it broke")
        assert here.told() == ["The job **job**, due Fri 2026-05-01 09:00 UTC, failed: it broke"]

    within(tmp_path, work)


def test_five_failures_in_a_row_switch_a_job_off_and_say_so(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY, conduct=Conduct(retries=0))
        await here.to("2026-05-20T00:00Z", "failed")
        row = here.row(job)
        assert (row.state, row.due, row.failures) == ("disabled", None, 5)
        assert len(here.ledger(job)) == 5
        assert "switched off" in here.told()[-1]
        await here.act(job, "resume")
        await here.to("2026-05-20T12:00Z")
        assert here.row(job).failures == 0
        assert here.states(job)[-1] == "done"

    within(tmp_path, work)


def test_a_retry_gives_way_to_the_next_slot(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(Timing(every="1m"))
        scheduler = here.scheduler()
        for minute in (1, 2):
            here.clock.at = ms(START) + minute * MINUTE
            await scheduler.tick()
            await here.work("failed" if minute == 1 else "done", error="it broke")
            here.clock.at += 1
            await scheduler.tick()
            if minute == 1:
                here.clock.at += 20_000
        states = here.states(job)
        assert states == ["failed", "done"]
        assert "given up for the next one" in here.ledger(job)[0].reason

    within(tmp_path, work)


def test_a_run_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY, conduct=Conduct(timeout=10 * MINUTE))
        scheduler = here.scheduler()
        here.clock.at = ms("2026-05-01T09:00Z")
        await scheduler.tick()
        turn = await here.begin(f"cron:{job.id}")
        wake = await scheduler.tick()
        assert wake == here.clock.at + 10 * MINUTE
        here.clock.at = wake
        await scheduler.tick()
        assert here.store.read(
            lambda connection: connection.execute("SELECT stop_requested FROM turns WHERE id = ?", (turn,)).fetchone()
        ) == (1,)
        await here.finish(turn, "cancelled", error="stopped")
        await scheduler.tick()
        (one,) = here.ledger(job)
        assert (one.state, one.reason) == ("failed", "it took longer than 10 min and was stopped")

    within(tmp_path, work)


def test_at_most_so_many_run_at_once(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        made = [await here.add(DAILY, name=f"job {number}") for number in range(5)]
        here.clock.at = ms("2026-05-01T09:00Z")
        scheduler = here.scheduler()
        finished = 0
        while True:
            await scheduler.tick()
            running = here.store.read(occurrences.count_running)
            assert running <= 2
            if not running:
                break
            finished += await here.work()
        assert finished == 5
        assert [here.states(job) for job in made] == [["done"]] * 5

    within(tmp_path, work, places=2)


def test_stagger_puts_a_job_off_always_by_the_same(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        jobs_made = [await here.add(DAILY, name=f"job {number}", conduct=Conduct(stagger=HOUR)) for number in range(6)]
        await here.to("2026-05-03T12:00Z")
        delays = [{one.begun - one.due for one in here.ledger(job)} for job in jobs_made]
        assert all(len(delay) == 1 for delay in delays)
        assert len(set.union(*delays)) > 3
        assert max(set.union(*delays)) < HOUR

    within(tmp_path, work)


def test_what_waits_of_a_removed_or_paused_job_is_not_run(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY, conduct=Conduct(stagger=DAY))
        here.clock.at = ms("2026-05-01T09:00Z")
        await here.scheduler().tick()
        await here.act(job, "pause")
        await here.to("2026-05-04T00:00Z")
        assert here.states(job) == ["skipped"]
        await here.act(job, "remove")
        assert not here.store.read(jobs.listed)
        assert here.states(job) == ["skipped"]

    within(tmp_path, work)


def test_a_job_made_by_hand_runs_besides_its_slots(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        await here.act(job, "run")
        await here.to("2026-05-01T10:00Z")
        assert [(one.state, one.manual) for one in here.ledger(job)] == [("done", True), ("done", False)]

    within(tmp_path, work)


def test_a_reminder_is_delivered_once_without_any_turn(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(Timing(at="in 20 minutes"), says=True)
        await here.to("2026-05-01T10:00Z")
        assert here.told() == ["Do it"]
        assert here.states(job) == ["done"]
        assert here.row(job).state == "over"
        assert not here.poked

    within(tmp_path, work)


def test_the_next_slot_is_derived_from_the_ledger(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        await here.to("2026-05-02T10:00Z")
        await here.store.write(lambda connection: connection.execute("UPDATE jobs SET due = 1 WHERE id = ?", (job.id,)))
        await here.scheduler().derive()
        assert here.row(job).due == ms("2026-05-03T09:00Z")

    within(tmp_path, work)


def test_old_rows_are_forgotten_but_never_the_newest_slot(tmp_path: Path) -> None:
    async def work(here: World) -> None:
        job = await here.add(DAILY)
        await here.to("2026-05-10T10:00Z")
        assert len(here.ledger(job)) == 10
        gone = await here.store.write(lambda connection: occurrences.forget(connection, before=here.clock.now() + DAY))
        assert gone == 9
        await here.scheduler().derive()
        assert here.row(job).due == ms("2026-05-11T09:00Z")

    within(tmp_path, work)
