"""Cases of `channels` that need the gateway as a whole: inbox, lanes, outbox and delivery over a platform."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from limpet.gateway.status import read_snapshot
from limpet.store import outbox, peers
from limpet.store.sql import Connection
from limpet.testing.channel import FakeChannel, Ways
from limpet.testing.fakes import Reply
from limpet.testing.platform import Sent
from limpet.types.channel import Traits
from limpet.types.envelope import Address, OutboxRow, Part
from tests.gateway.house import OWNER, echo, house

PLAIN = Traits()
CHAT = Address("fake", "main", "ann")
HOUR = 3_600_000
NO_DRAIN = "gateway.drain = 0.0"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIMPET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def quiet(fake: FakeChannel, count: int) -> bool:
    return len(fake.answers("ann")) >= count and not fake.platform.waiting()


@pytest.mark.parametrize("later", ["a_at_once", "b_later", "c_after_a_restart"])
def test_c44abc_an_update_that_comes_twice_is_answered_once(home: Path, later: str) -> None:
    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        asked = 0
        fake.doubled(later == "a_at_once")
        async with house(home, fake) as here:
            said = await fake.say("hello")
            await fake.until(lambda: quiet(fake, 1), within=30)
            if later == "b_later":
                fake.again(said)
                await fake.settled()
            asked += len(here.model.requests)
        if later == "c_after_a_restart":
            fake.again(said)
            async with house(home, fake) as here:
                await fake.settled()
                await fake.until(lambda: not here.gateway.lanes.running)
                asked += len(here.model.requests)
        return fake.answers("ann"), asked

    assert asyncio.run(main()) == (("echo: hello",), 1)


def test_c44d_what_was_stored_before_a_crash_is_answered_once_afterwards(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(
            home, fake, script=lambda seen: structs.replace(echo(seen), delay=30), config=NO_DRAIN
        ) as here:
            await fake.say("hello")
            await fake.until(lambda: len(here.model.requests) == 1)
        async with house(home, fake):
            await fake.until(lambda: quiet(fake, 1), within=30)
        return fake.answers("ann")

    assert asyncio.run(main()) == ("echo: hello",)


def test_c44e_the_same_words_again_are_a_message_of_their_own(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake):
            for count in (1, 2):
                await fake.say("hello")
                await fake.until(lambda count=count: quiet(fake, count), within=30)
        return fake.answers("ann")

    assert asyncio.run(main()) == ("echo: hello", "echo: hello")


def _outbox_of_c45(connection: Connection, now: int) -> None:
    peers.put(connection, peers.Peer("fake", "main", "ann", "owner", "", 1, "", "ann", 1))
    for name, age in (("m1", 0), ("m2", 60_000), ("m3", 15 * HOUR), ("m4", 0)):
        outbox.queue(connection, Part(CHAT, name, name), session="s", turn="", now=now - age)
    found = {row.text: row.id for row in outbox.waiting(connection, CHAT)}
    outbox.settle(connection, found["m1"], state="sent")
    outbox.settle(connection, found["m4"], state="failed", error="chat not found")


def test_c45_an_outbox_at_a_restart(home: Path) -> None:
    """The channel is ready late; what is too old is dropped and told; what failed is told; a parked turn goes on."""

    async def main() -> tuple[tuple[str, ...], int, str]:
        fake = FakeChannel(traits=PLAIN)
        config = f"{NO_DRAIN}\ngateway.delivery.minutes = 60"
        async with house(home, fake, script=lambda seen: structs.replace(echo(seen), delay=30), config=config) as here:
            await fake.say("work")
            await fake.until(lambda: len(here.model.requests) == 1)
        fake.ready(False)
        async with house(home, fake, config=config) as here:
            store = here.agents.state.store
            clock = here.gateway.snapshot().at
            await store.write(lambda connection: _outbox_of_c45(connection, clock))
            here.agents.state.nudges.wake()
            await fake.until(lambda: "echo: work" in _texts(store.read(lambda c: outbox.waiting(c, CHAT))), within=30)
            assert fake.answers("ann") == ()
            fake.ready(True)
            await fake.until(lambda: "It began: m3" in " ".join(fake.answers("ann")), within=30)
            await fake.until(lambda: "echo: work" in fake.answers("ann"), within=30)
            tries = {row.text: row.attempts for row in store.read(lambda c: outbox.listed(c, ("sent",)))}
            told = store.read(lambda c: outbox.untold(c, knows=outbox.SESSION_KNOWS, session="s"))
        return fake.answers("ann"), tries["m2"], " ".join(row.text for row in told)

    said, tries, told = asyncio.run(main())
    assert "m1" not in said
    assert said.count("m2") == 1
    assert tries == 1
    assert said.count("echo: work") == 1
    reports = "\n".join(text for text in said if "could not be delivered" in text)
    assert reports.count("It began: m3") == 1
    assert reports.count("chat not found. It began: m4") == 1
    assert told == "m3 m4"


def _texts(rows: list[OutboxRow]) -> list[str]:
    return [row.text for row in rows]


def test_c46_a_channel_that_is_down_is_never_shown_as_connected(home: Path) -> None:
    async def main() -> tuple[str, str, tuple[str, ...]]:
        fake = FakeChannel(traits=structs.replace(PLAIN, needs_link=False))
        path = str(home / "run" / "gateway.json")

        def state() -> str:
            found = read_snapshot(path)
            return found.channels[0].state if found is not None and found.channels else ""

        async with house(home, fake) as here:
            await fake.until(lambda: state() == "connected", within=30)
            fake.ready(False)
            await fake.until(lambda: here.gateway.snapshot().channels[0].state == "degraded", within=30)
            await fake.until(lambda: state() == "degraded", within=30)
            down = state()
            store = here.agents.state.store
            await store.write(lambda c: outbox.queue(c, Part(CHAT, "still", "still"), session="", turn="", now=2**42))
            here.agents.state.nudges.wake()
            await fake.until(lambda: fake.answers("ann") == ("still",), within=30)
            await fake.say("kept")
            fake.ready(True)
            await fake.until(lambda: quiet(fake, 2), within=30)
            await fake.until(lambda: state() == "connected", within=30)
            return down, state(), fake.answers("ann")

    assert asyncio.run(main()) == ("degraded", "connected", ("still", "echo: kept"))


GROUP = Ways(in_group=True, chat_name="Family")


@pytest.mark.parametrize("to_all", [False, True])
def test_c48_only_who_means_the_bot_gets_a_turn(home: Path, to_all: bool) -> None:
    async def main() -> list[str]:
        fake = FakeChannel(traits=PLAIN)
        settings = structs.replace(OWNER, to_all=to_all)
        async with house(home, fake, settings=settings, config='gateway.queue = "followup"') as here:
            for text, ways in (
                ("hi all", GROUP),
                ("hi", structs.replace(GROUP, mentioned=True)),
                ("@helperbot2 hi", GROUP),
                ("in reply", structs.replace(GROUP, mentioned=True, reply_to="m1")),
                ("@all hi", structs.replace(GROUP, to_all=True)),
                ("/stop", structs.replace(GROUP, mentioned=True)),
            ):
                await fake.say(text, chat="g", ways=ways)
                await fake.settled()
                await fake.until(lambda: not here.gateway.lanes.running, within=30)
            await fake.until(lambda: any("stop" in text.lower() for text in fake.answers("g")), within=30)
            assert all("Sender: Ann (ann)" in one for one in here.asked)
            said = [text.replace("\u200b", "") for text in fake.answers("g")]
            return [text for text in said if text.startswith("echo")]

    expected = ["echo: hi", "echo: in reply", *(["echo: @all hi"] if to_all else [])]
    assert asyncio.run(main()) == expected


def test_c48_each_topic_is_a_conversation_of_its_own_and_answers_stay_in_it(home: Path) -> None:
    async def main() -> tuple[dict[str, tuple[str, ...]], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake):
            for thread, text in (("42", "topic"), ("", "general")):
                ways = structs.replace(GROUP, mentioned=True, thread=thread)
                await fake.say(text, chat="g", ways=ways)
                await fake.until(lambda thread=thread: len(fake.answers("g", thread)) == 1, within=30)
            keys = {str(one.piece.address.thread) for one in fake.platform.of(Sent)}
        return {thread: fake.answers("g", thread) for thread in ("42", "")}, len(keys)

    said, threads = asyncio.run(main())
    assert said == {"42": ("echo: topic",), "": ("echo: general",)}
    assert threads == 2


def test_c41_of_a_long_answer_only_the_first_part_replies(home: Path) -> None:
    long = "\n\n".join(f"paragraph {number} " + "x" * 300 for number in range(6))

    async def main() -> list[str]:
        fake = FakeChannel(traits=Traits(limit=800))
        async with house(home, fake, script=[Reply(text=(long,))]):
            fake.fail("limit", seconds=0.05)
            await fake.say("tell", chat="g", ways=structs.replace(GROUP, mentioned=True))
            await fake.until(lambda: "paragraph 5" in " ".join(fake.answers("g")), within=60)
        return [one.piece.reply_to for one in fake.platform.of(Sent)]

    first, *others = asyncio.run(main())
    assert first
    assert not any(others)
