"""The gateway as a whole: what people say is answered once, in order, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.store import inbox, outbox, peers
from limpet.testing.channel import FakeChannel, Ways
from limpet.testing.fakes import Call, Reply
from limpet.testing.fakes.script import Seen
from limpet.testing.platform import Sent
from limpet.types.channel import Traits
from limpet.types.envelope import Attachment, Beside, Part
from tests.gateway.house import OWNER, House, echo, house, told

PLAIN = Traits(buttons=True)
GROUP = Ways(in_group=True, mentioned=True, chat_name="Family")


def slowly(seconds: float) -> Callable[[Seen], Reply]:
    """Echoes, each answer begun after a while."""
    return lambda seen: structs.replace(echo(seen), delay=seconds)


def texts(fake: FakeChannel, chat: str = "ann") -> tuple[str, ...]:
    return fake.answers(chat)


def test_a_message_is_answered(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake):
            await fake.say("hello")
            return await told(fake, 1)

    assert asyncio.run(main()) == ("echo: hello",)


def test_a_stranger_gets_one_code_and_may_speak_once_it_is_approved(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, settings=structs.replace(OWNER, owners=())) as here:
            await fake.say("hello", sender="bob")
            await told(fake, 1, "bob")
            await fake.say("hello?", sender="bob")
            await fake.settled()
            store = here.agents.state.store
            (code,) = store.read(lambda connection: peers.codes(connection, now=0))
            assert code.code in fake.answers("bob")[0]
            made = await store.write(
                lambda connection: peers.approve(connection, code.code, role=None, by="cli", now=code.created)
            )
            assert made is not None
            assert made.role == "owner"
            await fake.say("now?", sender="bob")
            return await told(fake, 2, "bob"), len(here.model.requests)

    said, asked = asyncio.run(main())
    assert said[1] == "echo: now?"
    assert asked == 1


def test_in_a_group_only_who_means_it_is_answered_and_the_sender_is_named(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], list[str]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await fake.say("hi all", chat="g1", ways=structs.replace(GROUP, mentioned=False))
            await fake.say("hi bot", sender="cat", chat="g1", ways=GROUP)
            return await told(fake, 1, "g1"), here.asked

    said, asked = asyncio.run(main())
    assert said == ("echo: hi bot",)
    assert len(asked) == 1
    assert "Chat: Family" in asked[0]
    assert "Sender: Cat (cat)" in asked[0]


def test_what_is_said_meanwhile_is_taken_into_the_turn(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if "zwei" not in str(seen.body):
            return Reply(calls=(Call("list_dir"),), delay=0.3)
        return Reply(text=("both",))

    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script, config="gateway.debounce = 0") as here:
            await fake.say("eins")
            await fake.until(lambda: len(here.model.requests) == 1)
            await fake.say("zwei")
            return await told(fake, 1), len(here.model.requests)

    assert asyncio.run(main()) == (("both",), 2)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("followup", ["one", "two", "three"]), ("collect", ["one", "three"]), ("interrupt", ["three"])],
)
def test_queue_modes(home: Path, mode: str, expected: list[str]) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=slowly(0.4), config=f'gateway.queue = "{mode}"') as here:
            await fake.say("one")
            await fake.until(lambda: len(here.model.requests) == 1)
            await fake.say("two")
            await fake.say("three")
            return await told(fake, len(expected))

    assert list(asyncio.run(main())) == [f"echo: {text}" for text in expected]


def test_stop_ends_a_turn_out_of_band(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=slowly(30.0)) as here:
            await fake.say("work")
            await fake.until(lambda: len(here.model.requests) == 1)
            await fake.say("/stop")
            await told(fake, 1)
            await fake.until(lambda: not here.gateway.lanes.running)
            return fake.answers("ann")

    (said,) = asyncio.run(main())
    assert "stop" in said.lower()


def test_peers_may_not_give_the_owners_commands(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, settings=structs.replace(OWNER, allow=("bob",))):
            await fake.say("/model x/y", sender="bob")
            await fake.say("/whoami", sender="bob")
            return await told(fake, 2, "bob")

    said = "\n".join(asyncio.run(main()))
    assert "Only the owner may use /model here." in said
    assert "somebody who may talk to me" in said


def test_an_approval_is_asked_in_the_chat_and_given_by_a_button(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if "'role': 'tool'" in str(seen.body):
            return Reply(text=("done",))
        return Reply(calls=(Call("exec", '{"command": "touch made", "place": "host"}'),))

    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script):
            await fake.say("make it")
            await told(fake, 1)
            choice = next(one.piece.choices[0] for one in fake.platform.of(Sent) if one.piece.choices)
            assert choice.label == "Yes, this once"
            await fake.say(choice.says, ways=Ways(pressed=True))
            await fake.until(lambda: "done" in fake.answers("ann"))
            return fake.answers("ann")

    said = asyncio.run(main())
    assert "I need your word" in said[0]
    assert any(text.startswith("Approved") for text in said)
    assert (home / "workspace" / "made").exists()


def test_a_preview_becomes_the_answer(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=("first ", "second ", "third"), gap=0.1)

    async def main() -> tuple[tuple[str, ...], int, int]:
        fake = FakeChannel()
        async with house(home, fake, script=script):
            await fake.say("tell")
            await fake.until(lambda: fake.answers("ann") == ("first second third",))
        kinds = [type(record).__name__ for record in fake.platform.records]
        return fake.answers("ann"), kinds.count("Sent"), kinds.count("Edited")

    said, sent, edited = asyncio.run(main())
    assert said == ("first second third",)
    assert sent == 1
    assert edited >= 1


def test_where_nothing_can_be_changed_paragraphs_come_as_they_are_finished(home: Path) -> None:
    first, second = "a " * 150, "b " * 150
    traits = Traits(blocks=True)

    def script(seen: Seen) -> Reply:
        return Reply(text=(f"{first}\n\n", f"{second}\n\n", "the end"), gap=0.3)

    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=traits)
        async with house(home, fake, script=script):
            await fake.say("tell")
            await fake.until(lambda: fake.answers("ann")[-1:] == ("the end",))
        return fake.answers("ann")

    assert [one.strip() for one in asyncio.run(main())] == [first.strip(), second.strip(), "the end"]


def test_what_may_have_arrived_is_not_sent_again_and_the_next_one_says_so(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=Traits())
        async with house(home, fake) as here:
            fake.fail("unsure")
            await fake.say("one")
            store = here.agents.state.store
            await fake.until(lambda: bool(store.read(lambda rows: outbox.listed(rows, ("unknown",)))), within=30)
            await fake.say("two")
            return await told(fake, 1)

    (said,) = asyncio.run(main())
    assert said == "[The message before this one may not have arrived.]\necho: two"


def test_who_is_refused_for_good_does_not_hold_up_the_chat_and_the_owner_is_told(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], tuple[str, ...], str]:
        fake = FakeChannel(traits=Traits())
        async with house(home, fake, settings=structs.replace(OWNER, allow=("bob",))) as here:
            store = here.agents.state.store
            await store.write(
                lambda connection: peers.put(
                    connection, peers.Peer("fake", "main", "ann", "owner", "", 1, "", "ann", 1)
                )
            )
            fake.fail("reject", chat="bob")
            await fake.say("one", sender="bob")
            await told(fake, 1)
            await fake.say("two", sender="bob")
            return await told(fake, 1, "bob"), await told(fake, 1), here.asked[-1]

    bob, owner, asked = asyncio.run(main())
    assert bob == ("echo: two",)
    assert "Your message to fake bob did not arrive" in asked
    assert "A message of mine could not be delivered" in owner[0]
    assert "not here, not ever" in owner[0]


def test_settings_that_change_count_at_once(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await fake.say("one")
            await told(fake, 1)
            (here.home / "SOUL").write_text("")
            config = here.home / "config.toml"
            config.write_text(config.read_text().replace("lab/dreamer", "lab/other"))
            await asyncio.sleep(0)
            await fake.until(lambda: here.agents.settings.agent.model == "lab/other")
            await fake.say("/model")
            return await told(fake, 2)

    assert "lab/other" in asyncio.run(main())[1]


def test_a_model_that_cannot_be_had_is_told_and_the_message_kept(home: Path) -> None:
    async def main() -> tuple[tuple[str, ...], int]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            config = here.home / "config.toml"
            text = config.read_text()
            config.write_text(text.replace("lab/dreamer", "nowhere/x"))
            await fake.until(lambda: here.agents.settings.agent.model == "nowhere/x")
            await fake.say("one")
            (said,) = await told(fake, 1)
            waiting = here.agents.state.store.read(inbox.keys_waiting)
            config.write_text(text)
            await fake.until(lambda: here.agents.settings.agent.model == "lab/dreamer")
            await fake.say("two")
            assert "Your message is kept" in said
            return await told(fake, 2), len(waiting)

    said, waiting = asyncio.run(main())
    assert waiting == 1
    assert said[1] == "echo: two"


def test_parts_of_a_long_answer_arrive_in_order_also_after_refusals(home: Path) -> None:
    long = "\n\n".join(f"paragraph {number} " + "x" * 300 for number in range(20))

    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=Traits(limit=1_000))
        async with house(home, fake, script=[Reply(text=(long,))]):
            fake.fail("limit", seconds=0.1)
            await fake.say("tell")
            await fake.until(lambda: "paragraph 19" in " ".join(fake.answers("ann")[-1:]), within=30)
        return fake.answers("ann")

    said = asyncio.run(main())
    assert [int(one.split()[1]) for text in said for one in text.split("\n\n")] == list(range(20))


def test_everything_is_settled_at_the_end(home: Path) -> None:
    async def main() -> House:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            for number in range(5):
                await fake.say(f"m{number}", sender="ann", chat=f"g{number}", ways=GROUP)
            for number in range(5):
                await told(fake, 1, f"g{number}")
            await fake.until(lambda: not here.agents.state.store.read(outbox.chats_waiting))
            assert here.agents.state.store.read(inbox.keys_waiting) == []
        return here

    asyncio.run(main())


def test_a_conversation_is_sent_as_a_file(home: Path) -> None:
    async def main() -> list[str]:
        fake = FakeChannel(traits=Traits(upload=10_000_000))
        async with house(home, fake):
            await fake.say("hello")
            await told(fake, 1)
            await fake.say("/export")
            await told(fake, 3)
        return [one.name for sent in fake.platform.of(Sent) for one in sent.piece.attachments]

    assert asyncio.run(main()) == ["conversation.md"]


def test_the_owner_can_have_the_gateway_begin_anew(home: Path) -> None:
    async def main() -> bool:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake) as here:
            await fake.say("/restart")
            async with asyncio.timeout(30):
                await here.gateway.restarting.wait()
            await told(fake, 1)
            return here.gateway.restarting.is_set()

    assert asyncio.run(main())


def test_the_tool_message_sends_text_and_files_elsewhere(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if "'role': 'tool'" in str(seen.body):
            return Reply(text=("done",))
        return Reply(calls=(Call("message", '{"text": "look", "files": ["note.txt"], "to": "bob"}'),))

    async def main() -> tuple[list[str], tuple[str, ...]]:
        fake = FakeChannel(traits=Traits(upload=10_000_000))
        async with house(home, fake, script=script, settings=structs.replace(OWNER, allow=("bob",))) as here:
            bob = peers.Peer("fake", "main", "bob", "peer", "Bob", 1, "", "bob", 1)
            await here.agents.state.store.write(lambda connection: peers.put(connection, bob))
            (home / "workspace" / "note.txt").write_text("hello")
            await fake.say("tell bob")
            await told(fake, 1, "bob")
            await told(fake, 1)
        found = [one.name for sent in fake.platform.of(Sent) for one in sent.piece.attachments]
        return found, fake.answers("bob")

    assert asyncio.run(main()) == (["note.txt"], ("look",))


def test_what_others_than_the_owner_ask_for_has_fewer_tools(home: Path) -> None:
    def script(seen: Seen) -> Reply:
        if "'role': 'tool'" in str(seen.body):
            return Reply(text=("refused" if "has no exec" in str(seen.body) else "ran",))
        return Reply(calls=(Call("exec", '{"command": "true"}'),))

    async def main() -> tuple[tuple[str, ...], tuple[str, ...]]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, script=script, settings=structs.replace(OWNER, allow=("bob",))):
            await fake.say("run", sender="bob")
            await fake.say("run")
            return await told(fake, 1, "bob"), await told(fake, 1)

    assert asyncio.run(main())[0] == ("refused",)


def test_two_agents_have_workspaces_of_their_own(home: Path) -> None:
    config = (
        '[agents.work]\nworkspace = "office"\n[[gateway.bindings]]\nchannel = "fake"\nchat = "g2"\nagent = "work"\n'
    )

    async def main() -> tuple[str, str]:
        fake = FakeChannel(traits=PLAIN)
        async with house(home, fake, config=config):
            for chat in ("g1", "g2"):
                await fake.say("/status", chat=chat, ways=GROUP)
            return (await told(fake, 1, "g1"))[0], (await told(fake, 1, "g2"))[0]

    first, second = asyncio.run(main())
    assert "agent:main:fake:group:g1" in first
    assert "agent:work:fake:group:g2" in second
    assert (home / "office" / "AGENTS.md").exists()


def test_a_file_that_the_platform_does_not_take_is_said_and_the_text_arrives(home: Path) -> None:
    async def main() -> tuple[str, ...]:
        fake = FakeChannel(traits=Traits(upload=10))
        async with house(home, fake):
            await fake.say("hello")
            await told(fake, 1)
            await fake.say("/export")
            return await told(fake, 3)

    assert "The file conversation.md" in "\n".join(asyncio.run(main()))


def test_a_text_too_long_to_stand_beside_a_file_goes_before_it(home: Path) -> None:
    async def main() -> list[tuple[int, int]]:
        fake = FakeChannel(traits=Traits(upload=10_000_000, caption=100))
        async with house(home, fake) as here:
            store = here.agents.state.store
            files = (Attachment("0" * 64, "note.txt", size=5),)
            part = Part(fake.address("ann"), "word " * 60, "k", beside=Beside(attachments=files))
            await store.write(
                lambda rows: outbox.queue(rows, part, session="", turn="", now=here.gateway.snapshot().at)
            )
            here.agents.state.nudges.wake()
            await fake.until(lambda: len(fake.platform.of(Sent)) == 2, within=30)
        return [(len(one.piece.body.plain), len(one.piece.attachments)) for one in fake.platform.of(Sent)]

    assert asyncio.run(main()) == [(299, 0), (0, 1)]
