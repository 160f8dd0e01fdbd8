import asyncio
from pathlib import Path

from limpet.store import removal, wakes
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.processes import BEATS, SOURCE, TOLD_AT_ONCE, Begun, StoredProcesses, tell
from limpet.store.sessions import open_live
from limpet.testing.clock import FakeClock

KEY = "agent:main:main"


class Records:
    """A database with one session, and the records of one process in it."""

    def __init__(self, folder: Path) -> None:
        self.owner = Owner(str(folder / "run"))
        self.store = Store.open(str(folder / "limpet.db"), process=self.owner.name)
        self.stored = StoredProcesses(self.store, self.owner, FakeClock())

    async def __aenter__(self):
        self.session = (await self.store.write(lambda c: open_live(c, KEY, agent="main", now=0))).id
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()
        self.owner.close()

    def begun(self, id: str, *, session: str = "") -> Begun:
        return Begun(id, session or self.session, f"run {id}", 1, "birth", "mark")

    async def tell(self) -> str:
        return await self.store.write(lambda c: tell(c, KEY, now=1))


def test_numbers_are_those_of_the_conversation(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            await records.stored.begin(records.begun("a"))
            numbers = [await records.stored.to_background(records.begun(one)) for one in ("b", "a")]
            other = await records.stored.to_background(records.begun("c", session="elsewhere"))
            assert (numbers, other) == ([1, 2], 1)
            assert records.stored.find(KEY, 2).id == "a"
            assert records.stored.find(KEY, 3) is None

    asyncio.run(main())


def test_only_ended_ones_in_the_background_are_told_and_once(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            await records.stored.begin(records.begun("foreground"))
            for name in ("runs", "ended", "seen"):
                await records.stored.to_background(records.begun(name))
            for name in ("foreground", "ended", "seen"):
                await records.stored.end(name, outcome="ended well", tail="last")
            await records.stored.told("seen")
            assert await records.tell() == ("[The background command p2 (run ended) ended well. Its last lines:\nlast]")
            assert await records.tell() == ""

    asyncio.run(main())


def test_many_ends_are_told_in_parts(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            for number in range(TOLD_AT_ONCE + 2):
                await records.stored.to_background(records.begun(f"c{number:02}"))
                await records.stored.end(f"c{number:02}", outcome="ended", tail="")
            assert len((await records.tell()).splitlines()) == TOLD_AT_ONCE
            assert len((await records.tell()).splitlines()) == 2

    asyncio.run(main())


def test_what_is_forgotten_is_gone_from_the_records(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            await records.stored.to_background(records.begun("secret"))
            await records.stored.end("secret", outcome="ended well", tail="secret output")
            await records.store.write(lambda c: removal.forget_commands(c, records.session))
            assert "secret" not in await records.tell()
            await records.store.write(lambda c: removal.delete(c, records.session))
            assert records.stored.find(KEY, 1) is None

    asyncio.run(main())


def test_an_end_that_nobody_wanted_wakes_the_heartbeat_until_its_conversation_knows(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            for name in ("heard", "killed", "seen"):
                await records.stored.to_background(records.begun(name))
                await records.stored.end(name, outcome="ended well", tail="last", wanted=name == "killed")
            await records.stored.told("seen")
            (one,) = records.store.read(wakes.waiting)
            assert (one.agent, one.source, one.soon, one.trust) == ("main", SOURCE, False, "owner")
            assert one.text == f"p1 (run heard) of the conversation {KEY} ended well"
            await records.tell()
            assert not records.store.read(wakes.waiting)

    asyncio.run(main())


def test_the_end_of_a_command_of_a_heartbeat_does_not_beget_the_next_one(tmp_path):
    async def main():
        async with Records(tmp_path) as records:
            key = "cron:heartbeat-main"
            beat = await records.store.write(lambda c: open_live(c, key, agent="main", now=0))
            await records.stored.to_background(records.begun("a", session=beat.id))
            await records.stored.end("a", outcome="ended well", tail="")
            (one,) = records.store.read(wakes.waiting)
            assert (one.source, one.soon) == (BEATS, False)

    asyncio.run(main())
