"""Jobs in a running gateway: due, run once, delivered; and what an unattended turn may not do."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.schedule import desk
from limpet.schedule.desk import Maker, Timing, Wish
from limpet.store import jobs, occurrences, outbox, sessions
from limpet.store.sql import Connection
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.types.channel import Traits
from limpet.types.job import Conduct, Job, Occurrence
from tests.gateway.house import House, echo, house, messages

PLAIN = Traits(buttons=True)
DAILY = Timing(cron="0 8 * * *")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


async def made(here: House, wish: Wish, maker: Maker | None = None) -> Job:
    """A new job that runs now, once, besides its schedule."""
    now = time.time_ns() // 1_000_000

    def work(connection: Connection) -> Job:
        change = desk.make(connection, wish, maker or Maker("main", "UTC"), now=now)
        assert change.job is not None
        jobs.apply(connection, change)
        jobs.apply(connection, desk.change(desk.the_one(connection, change.job.id), "run", now=now))
        return change.job

    job = await here.agents.state.store.write(work)
    here.agents.state.nudges.wake()
    return job


def row_of(here: House, job: Job) -> Occurrence:
    (found,) = here.agents.state.store.read(lambda connection: occurrences.history(connection, job=job.id))
    return found


async def ended(here: House, fake: FakeChannel, job: Job) -> Occurrence:
    await fake.until(lambda: row_of(here, job).ended > 0, within=30)
    return row_of(here, job)


async def speaking(fake: FakeChannel) -> None:
    """The owner has spoken, so that there is a newest chat."""
    await fake.say("hi")
    await fake.until(lambda: len(fake.answers("ann")) == 1, within=30)


def test_a_due_job_runs_and_its_answer_goes_to_the_newest_chat(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], Occurrence, str]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await speaking(fake)
            job = await made(here, Wish("Say good morning", DAILY))
            found = await ended(here, fake, job)
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            return fake.answers("ann"), found, here.asked[-1]

    said, found, asked = asyncio.run(main())
    assert said[1] == "echo: Say good morning"
    assert (found.state, found.attempt, found.reason) == ("done", 1, "")
    assert found.turn
    assert "[The job say-good-morning is due.]" in asked


def test_a_one_shot_runs_by_itself_and_is_over(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], str, int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await speaking(fake)
            store, now = here.agents.state.store, time.time_ns() // 1_000_000

            def work(connection: Connection) -> Job:
                change = desk.make(
                    connection, Wish("Tea", Timing(at="in 1 min"), says=True), Maker("main", "UTC"), now=now
                )
                assert change.job is not None
                soon = structs.replace(change.job, schedule=structs.replace(change.job.schedule, at=now + 50))
                jobs.apply(connection, structs.replace(change, job=soon, due=now + 50))
                return soon

            job = await store.write(work)
            here.agents.state.nudges.wake()
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            found = store.read(lambda connection: jobs.find(connection, job.id))
            assert found is not None
            return fake.answers("ann"), found.state, len(here.model.requests)

    said, state, asked = asyncio.run(main())
    assert said[1] == "Tea"
    assert state == "over"
    assert asked == 1  # the greeting alone: a reminder asks no model


def test_a_silent_answer_is_recorded_and_not_delivered(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=("**[SILENT]**",)) if "is due" in str(seen.body) else echo(seen)

    async def main() -> tuple[tuple[str, ...], Occurrence]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            found = await ended(here, fake, await made(here, Wish("Anything new?", DAILY)))
            await fake.say("still there?")
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            return fake.answers("ann"), found

    said, found = asyncio.run(main())
    assert said == ("echo: hi", "echo: still there?")
    assert (found.state, found.reason) == ("done", "silent")


def test_a_failed_run_waits_for_its_next_attempt_and_bothers_nobody(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(status=400) if "is due" in str(seen.body) else echo(seen)

    async def main() -> tuple[tuple[str, ...], Occurrence]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            job = await made(here, Wish("Fail", DAILY))
            await fake.until(lambda: bool(row_of(here, job).reason), within=30)
            return fake.answers("ann"), row_of(here, job)

    said, found = asyncio.run(main())
    assert said == ("echo: hi",)
    assert (found.state, found.attempt) == ("waiting", 1)
    assert found.next - found.begun >= 30_000


def test_the_owner_is_told_once_of_what_failed_for_good(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(status=400) if "is due" in str(seen.body) else echo(seen)

    async def main() -> tuple[tuple[str, ...], Occurrence]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            job = await made(here, Wish("Fail", DAILY, conduct=Conduct(retries=0)))
            found = await ended(here, fake, job)
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            return fake.answers("ann"), found

    said, found = asyncio.run(main())
    assert found.state == "failed"
    assert said[1].startswith("The job fail, due ")


@pytest.mark.parametrize(("grants", "written"), [((), False), (("exec",), True)])
def test_what_needs_a_word_is_refused_at_once_unless_it_was_granted(
    home: Path, grants: tuple[str, ...], written: bool
) -> None:
    def script(seen: Seen) -> Reply:
        if "is due" not in str(seen.body):
            return echo(seen)
        if "'role': 'tool'" in str(seen.body):
            return Reply(text=("tried",))
        return Reply(calls=(Call("exec", '{"command": "echo free > made.txt", "place": "host"}'),))

    async def main() -> bool:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            job = await made(here, Wish("Write it", DAILY, grants=grants))
            assert (await ended(here, fake, job)).state == "done"
            return (home / "workspace" / "made.txt").exists()

    assert asyncio.run(main()) is written


def test_each_run_has_a_session_of_its_own_and_none_of_it_is_in_the_main_one(home: Path) -> None:
    async def main() -> tuple[int, int, int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await speaking(fake)
            job = await made(here, Wish("Count", DAILY))
            first = await ended(here, fake, job)
            store = here.agents.state.store
            await store.write(
                lambda connection: jobs.apply(
                    connection, desk.change(desk.the_one(connection, job.id), "run", now=first.due + 1)
                )
            )
            here.agents.state.nudges.wake()
            await fake.until(lambda: len(fake.answers("ann")) == 3, within=30)
            runs = store.read(lambda connection: sessions.under(connection, job.key))
            sizes = [len(str(seen.body)) for seen in here.model.requests[1:]]
            return len(runs), sizes[0], sizes[1]

    runs, first, second = asyncio.run(main())
    assert runs == 2
    assert second <= first * 1.05


def making(when: str, **more: str) -> Call:
    """The call of the tool `cron` that makes a reminder."""
    told = {"action": "add", "remind": "Tea is ready", "when": when, **more}
    return Call("call_tool", json.dumps({"name": "cron", "arguments": told}))


def asked_for(call: Call) -> Callable[[Seen], Reply]:
    """Makes the call once, then says what came of it."""

    def script(seen: Seen) -> Reply:
        last = messages(seen.body)[-1]
        if isinstance(last, dict) and last.get("role") == "tool":
            return Reply(text=(str(last["content"]),))
        return Reply(calls=(call,))

    return script


def test_remind_me_makes_a_job_and_confirms_its_local_time(home: Path) -> None:
    async def main() -> tuple[str, str, str]:
        fake = FakeChannel(traits=PLAIN)
        config = 'user.timezone = "Asia/Ho_Chi_Minh"'
        async with house(home, fake, script=asked_for(making("07:26", name="tea")), config=config) as here:
            await fake.say("remind me at 07:26")
            await fake.until(lambda: len(fake.answers("ann")) == 1, within=30)
            await fake.say("/cron")
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            store = here.agents.state.store
            (row,) = store.read(lambda connection: jobs.named(connection, "tea"))
            assert row.job.says
            assert row.job.address is not None
            return *fake.answers("ann"), row.job.address.chat

    said, listed, chat = asyncio.run(main())
    assert "07:26 Asia/Ho_Chi_Minh" in said
    assert "tea: next" in listed
    assert chat == "ann"


def test_a_run_of_a_job_makes_no_jobs(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return asked_for(making("in 2 min", name="more"))(seen) if "is due" in str(seen.body) else echo(seen)

    async def main() -> tuple[str, int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            await ended(here, fake, await made(here, Wish("Make more", DAILY)))
            await fake.until(lambda: len(fake.answers("ann")) == 2, within=30)
            found = here.agents.state.store.read(lambda connection: jobs.named(connection, "more"))
            return fake.answers("ann")[1], len(found)

    said, count = asyncio.run(main())
    assert "makes no jobs" in said
    assert count == 0


def test_a_page_is_summarised_for_a_group_and_nothing_else_is_sent(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if "is due" not in str(seen.body):
            return echo(seen)
        return Reply(text=("The news in short",))

    async def main() -> tuple[tuple[str, ...], tuple[str, ...]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await speaking(fake)
            wish = Wish("Summarise the page", DAILY, address=fake.address("g1"))
            await ended(here, fake, await made(here, wish))
            await fake.until(lambda: len(fake.answers("g1")) == 1, within=30)
            return fake.answers("g1"), fake.answers("ann")

    assert asyncio.run(main()) == (("The news in short",), ("echo: hi",))


def test_an_answer_for_nobody_stays_in_the_ledger(home: Path) -> None:
    async def main() -> tuple[Occurrence, int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await speaking(fake)
            found = await ended(here, fake, await made(here, Wish("Look", DAILY, delivery="none")))
            rows = here.agents.state.store.read(lambda connection: outbox.listed(connection, ("queued", "failed")))
            return found, len(rows)

    found, left = asyncio.run(main())
    assert (found.state, found.reason) == ("done", "")
    assert left == 0
