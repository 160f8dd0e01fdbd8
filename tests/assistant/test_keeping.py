"""Keeping: what is too old goes once a day, archived first; nothing that is still needed goes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant import keeping
from limpet.assistant.conversation import Conversation
from limpet.assistant.ending import close_ended
from limpet.assistant.keeping import DAY, Records
from limpet.assistant.services import Keeping, Rules, Services
from limpet.errors import StoreError
from limpet.session import keep
from limpet.store import entries, jobs, removal, sessions
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import ScriptedModel
from limpet.types.envelope import Mandate
from limpet.types.job import Job, JobChange, Schedule
from tests.assistant.room import KEY, home, said


def kept(services: Services, folder: Path, days: Keeping) -> Services:
    return replace(services, rules=Rules(keeping=replace_paths(days, folder)))


def replace_paths(days: Keeping, folder: Path) -> Keeping:
    return structs.replace(days, archive=str(folder / "archive"), blobs=str(folder / "blobs"))


def count(services: Services, table: str) -> int:
    row = services.store.read(lambda c: c.execute(f"SELECT count(*) FROM {table}").fetchone())
    assert row is not None
    return int(str(row[0]))


def clock_of(services: Services) -> FakeClock:
    assert isinstance(services.clock, FakeClock)
    return services.clock


async def two_conversations(services: Services) -> None:
    """One that has ended, and one that goes on."""
    talk = Conversation(services, KEY)
    await talk.send(said("old"))
    await talk.send(said("/new"))
    await close_ended(services, KEY)
    await talk.send(said("new"))


def test_once_a_day_what_is_too_old_goes_into_the_archive(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (plain, _):
            services = kept(plain, tmp_path, Keeping(sessions=30))
            await two_conversations(services)
            await keeping.once_a_day(services)
            assert count(services, "sessions") == 2
            await clock_of(services).sleep(31 * DAY / 1000)
            await keeping.once_a_day(services)
            assert count(services, "sessions") == 1
            assert len(list((tmp_path / "archive").iterdir())) == 1
            groups = services.store.stats.groups
            await keeping.once_a_day(services)
            assert services.store.stats.groups == groups, "only once a day"

    asyncio.run(main())


def test_for_ever_costs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (services, _):
            await two_conversations(services)
            groups = services.store.stats.groups
            await keeping.once_a_day(services)
            assert services.store.stats.groups == groups

    asyncio.run(main())


def test_what_still_owes_its_notes_stays(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("old"))
            await talk.send(said("/new"))
            assert services.store.read(lambda c: sessions.ended_before(c, 2**62)) == []

    asyncio.run(main())


def test_rows_go_by_age_but_not_those_that_wait_or_run(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (services, _):
            await Conversation(services, KEY).send(said("one"))
            await services.store.write(lambda c: c.execute("UPDATE outbox SET state = 'sent'").fetchall())
            await Conversation(services, KEY).send(said("two"))
            inside = "INSERT INTO inbox (key, channel, account, event, state, received, payload) VALUES"
            await services.store.write(
                lambda c: c.execute(f"{inside} ('k', 'c', '', 'e', 'queued', 0, x'00')").fetchall()
            )
            gone = await services.store.write(lambda c: removal.drop_old_rows(c, before=2**62))
            assert gone == 3
            assert count(services, "inbox") == 1, "the one that waits"
            assert count(services, "outbox") == 1, "the one that is not sent yet"

    asyncio.run(main())


def test_old_archives_go_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (plain, _):
            services = kept(plain, tmp_path, Keeping(archives=30))
            (tmp_path / "archive").mkdir()
            (tmp_path / "archive" / "2020-01-01-s.jsonl.gz").write_bytes(b"x")
            (tmp_path / "archive" / "notes.txt").write_bytes(b"x")
            await clock_of(services).sleep(40_000 * DAY / 1000)
            await keeping.once_a_day(services)
            assert [path.name for path in (tmp_path / "archive").iterdir()] == ["notes.txt"]

    asyncio.run(main())


def test_nothing_is_deleted_that_could_not_be_archived(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (services, _):
            await two_conversations(services)
            (tmp_path / "archive").write_text("a file")
            row = services.store.read(lambda c: sessions.recent(c))[-1]
            records = Records(services.store, services.owner, str(tmp_path / "blobs"), str(tmp_path / "archive"))
            with pytest.raises(StoreError, match="Nothing was deleted"):
                await keeping.delete(records, row, now=1, why="test")
            assert services.store.read(lambda c: entries.load(c, row.id))

    asyncio.run(main())


def test_an_archive_is_found_by_its_age_and_name(tmp_path: Path) -> None:
    assert keep.old_archives(str(tmp_path / "none"), before=2**62) == []


@pytest.mark.parametrize(("state", "left"), [("active", 1), ("over", 0), ("gone", 0)])
def test_runs_of_jobs_go_into_the_archive_and_the_last_one_with_its_job(tmp_path: Path, state: str, left: int) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"], forever=True)) as (plain, _):
            services = kept(plain, tmp_path, Keeping(runs=30))
            made = Job("j1", "job", "main", Schedule("at", "x", "UTC", at=1), "x", "cron:j1", Mandate("j1", "job"))
            await plain.store.write(lambda c: jobs.apply(c, JobChange("put", "j1", plain.clock.now(), made, 1)))
            for number in range(3):
                event = said("go", event=f"cron:j1:{number}:1")
                await Conversation(services, "cron:j1").send(structs.replace(event, mandate=made.mandate))
            if state == "over":
                await plain.store.write(lambda c: jobs.end(c, "j1", state="over"))
            if state == "gone":
                await plain.store.write(lambda c: jobs.apply(c, JobChange("remove", "j1", 2)))
            await Conversation(services, KEY).send(said("mine"))
            await clock_of(services).sleep(31 * DAY / 1000)
            await keeping.once_a_day(services)
            assert len(plain.store.read(lambda c: sessions.under(c, "cron:j1"))) == left
            assert len(plain.store.read(lambda c: sessions.under(c, KEY))) == 1
            assert len(list((tmp_path / "archive").iterdir())) == 3 - left

    asyncio.run(main())
