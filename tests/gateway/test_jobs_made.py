"""Jobs as they are made in chats: by whom, with what rights, and what the audit hears of it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from msgspec import structs

from limpet.schedule.desk import Timing, Wish
from limpet.store import audit, jobs
from limpet.testing.channel import FakeChannel
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.types.channel import Traits
from limpet.types.job import JobRow, Occurrence
from tests.gateway.house import OWNER, House, echo, house, messages, told
from tests.gateway.test_jobs import asked_for, ended, made, making

PLAIN = Traits(buttons=True)
BOTH = structs.replace(OWNER, allow=("bob",))
PEERS = 'policy.peers = "coding"'


def all_jobs(here: House) -> list[JobRow]:
    found = here.agents.state.store.read(jobs.listed)
    return [row for row in found if row.job.name != "heartbeat"]


def changes(here: House) -> list[str]:
    rows = here.agents.state.store.read(lambda connection: list(audit.rows(connection)))
    return [row.detail for row in rows if row.act == "job.changed"]


def test_the_owner_makes_a_job_with_a_command_for_the_chat_it_is_given_in(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], JobRow, list[str], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, config='user.timezone = "Asia/Tokyo"') as here:
            await fake.say("/cron add Sum up the news --cron 30 8 * * 1-5 --name news --allow exec")
            await told(fake, 1)
            (row,) = all_jobs(here)
            for number, words in enumerate(("pause news", "resume news", "remove news", "pause news"), start=2):
                await fake.say(f"/cron {words}")
                await told(fake, number)
            return fake.answers("ann"), row, changes(here), len(here.model.requests)

    said, row, audited, asked = asyncio.run(main())
    assert "08:30 Asia/Tokyo" in said[0]
    assert "There is no job 'news'" in said[4]
    assert (row.job.delivery, row.job.address.chat if row.job.address else "") == ("chat", "ann")
    assert (row.job.text, row.job.mandate.grants) == ("Sum up the news", ("exec",))
    assert audited == [
        "add by=fake:ann grants=exec to=fake:ann", "pause by=fake:ann", "resume by=fake:ann", "remove by=fake:ann",
    ]  # fmt: skip
    assert asked == 0


def test_what_is_wrong_with_a_command_is_said(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            for number, words in enumerate(("x --at 7:30 --zone Mars/Base", "x", "x --cron 1 2 3"), start=1):
                await fake.say(f"/cron add {words}")
                await told(fake, number)
            return fake.answers("ann"), len(all_jobs(here))

    said, count = asyncio.run(main())
    assert "Mars/Base" in said[0]
    assert "Say when" in said[1]
    assert "3 fields, not five" in said[2]
    assert count == 0


def test_others_have_no_command_for_it(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, settings=BOTH) as here:
            await fake.say("/cron add x --every 1h", sender="bob")
            return await told(fake, 1, "bob"), len(all_jobs(here))

    assert asyncio.run(main()) == (("Only the owner may use /cron here.",), 0)


def test_a_job_of_a_peer_is_of_his_conversation_and_may_what_he_may(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        last = messages(seen.body)[-1]
        if isinstance(last, dict) and last.get("role") == "tool":
            return Reply(text=(str(last["content"]),))
        if "[The job" in str(last):
            return Reply(calls=(Call("exec", '{"command": "echo x > made.txt", "place": "host"}'),))
        return Reply(calls=(making("every 1h", name="his"),))

    async def main() -> tuple[JobRow, tuple[str, ...], bool, list[str]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script, settings=BOTH, config=PEERS) as here:
            await fake.say("remind me", sender="bob")
            await told(fake, 1, "bob")
            (row,) = all_jobs(here)
            work = structs.replace(row.job, says=False, text="Write it")
            await here.agents.state.store.write(lambda c: jobs.rewrite(c, work))
            await fake.say("hi")
            await told(fake, 1)
            await fake.say("/cron run his")
            await told(fake, 2, "bob")
            return row, fake.answers("bob"), (home / "workspace" / "made.txt").exists(), changes(here)

    row, said, written, audited = asyncio.run(main())
    job = row.job
    assert (job.trust, job.mandate.sender, job.mandate.grants) == ("peer", "bob", ())
    assert job.key == "agent:main:fake:direct:bob"
    assert "Not allowed" in said[1] or "not approved" in said[1].lower()
    assert not written
    assert audited == ["add by=fake:bob to=fake:bob"]


def test_a_reminder_is_confirmed_delivered_once_and_not_read_as_a_message(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return echo(seen) if "thanks" in str(seen.body) else asked_for(making("in 1 min", name="tea"))(seen)

    async def main() -> tuple[tuple[str, ...], list[object], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script, config='user.timezone = "Asia/Tokyo"') as here:
            await fake.say("remind me in a minute")
            await told(fake, 1)
            (row,) = all_jobs(here)
            store, soon = here.agents.state.store, time.time_ns() // 1_000_000 + 50
            moved = structs.replace(row.job, schedule=structs.replace(row.job.schedule, at=soon))
            await store.write(lambda c: (jobs.rewrite(c, moved), jobs.advance(c, moved.id, seen=row.due, due=soon)))
            here.agents.state.nudges.wake()
            await told(fake, 2)
            asked = len(here.model.requests)
            await fake.say("thanks")
            await told(fake, 3)
            users = [one for one in messages(here.model.requests[-1].body) if isinstance(one, dict)]
            return fake.answers("ann"), [one["content"] for one in users if one["role"] == "user"], asked

    said, sent, asked = asyncio.run(main())
    assert "Asia/Tokyo" in said[0]
    assert said[1] == "Tea is ready"
    assert asked == 2
    assert len(sent) == 2
    assert "Tea is ready" not in str(sent)


def test_a_job_of_the_main_session_runs_there_and_asks_nobody(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        last = messages(seen.body)[-1]
        if isinstance(last, dict) and last.get("role") == "tool":
            return Reply(text=(str(last["content"]),))
        host = Call("exec", '{"command": "echo x > made.txt", "place": "host"}')
        return Reply(calls=(host,)) if "[The job" in str(last) else echo(seen)

    async def main() -> tuple[Occurrence, tuple[str, ...], list[str]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script) as here:
            await fake.say("hi")
            await told(fake, 1)
            job = await made(here, Wish("Write it", Timing(every="1d"), where="main"))
            found = await ended(here, fake, job)
            await told(fake, 2)
            query = "SELECT key FROM sessions JOIN turns ON turns.session = sessions.id WHERE turns.id = ?"
            keys = here.agents.state.store.read(lambda c: c.execute(query, (found.turn,)).fetchall())
            return found, fake.answers("ann"), [str(key) for (key,) in keys]

    found, said, keys = asyncio.run(main())
    assert (found.state, keys) == ("done", ["agent:main:main"])
    assert "Not allowed" in said[1] or "not approved" in said[1].lower()
    assert not (home / "workspace" / "made.txt").exists()
