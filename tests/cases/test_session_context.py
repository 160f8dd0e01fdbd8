"""Concrete inputs of the field on long conversations: reductions, and messages that come meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from limpet.llm.profiles import profile_of
from limpet.session.room import room_of
from limpet.store import entries, sessions
from limpet.testing.fakes import FakeOpenAI, Reply, Rules, Seen
from limpet.types.entry import Compaction, Entry, Flush, UserEntry
from tests.assistant.room import KEY
from tests.cases.stage import Stage, stage

LIMIT = 32_000
MARK = "housekeeping"
"""A word of every request for a digest, and of no other one."""
DIGEST = "<notes>\n- The cat is called Miso.\n</notes>\n<summary>\n## Goal\nTell long stories.\n</summary>"


def is_digest(seen: Seen) -> bool:
    return MARK in seen.raw.decode()


def entries_of(one: Stage) -> list[Entry]:
    session = one.services.store.read(lambda connection: sessions.live(connection, KEY))
    assert session is not None
    return one.services.store.read(lambda connection: entries.load(connection, session.id))


def notes(folder: Path) -> str:
    """All the days' notes."""
    return "".join(file.read_text() for file in sorted((folder / "memory").glob("????-??-??.md")))


def reductions(one: Stage) -> list[Compaction]:
    return [entry.payload for entry in entries_of(one) if isinstance(entry.payload, Compaction)]


async def long_history(folder: Path) -> None:
    """Sixty thousand characters of conversation, with a model that took them."""
    async with FakeOpenAI(lambda seen: Reply(text=("word " * 400,))) as server, stage(folder, server) as one:
        for number in range(15):
            await one.say(f"story {number}: " + "tale " * 400)


def too_long(digest: Callable[[], Reply]) -> Callable[[Seen], Reply]:
    """A service that takes 32,000 characters and, unlike most, does not say how many."""

    def script(seen: Seen) -> Reply:
        if len(seen.raw) > LIMIT:
            error = {"error": {"message": "Too long.", "code": "context_length_exceeded"}}
            return Reply(status=400, body=error)
        return digest() if is_digest(seen) else Reply(text=("fine",))

    return script


def test_c21a_a_summary_in_pieces_makes_room_and_the_turn_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        await long_history(tmp_path)
        async with FakeOpenAI(too_long(lambda: Reply(text=(DIGEST,)))) as server, stage(tmp_path, server) as one:
            before = entries_of(one)
            await one.say("and now?")
            assert one.replies[-1] == "fine"
            digests = [seen for seen in server.requests if is_digest(seen)]
            assert digests
            assert all(len(seen.raw) <= LIMIT for seen in digests)
            assert len(server.requests) <= 8
            assert entries_of(one)[: len(before)] == before, "the log itself is never changed"
            assert "Tell long stories." in server.requests[-1].raw.decode()
            assert "and now?" in server.requests[-1].raw.decode()
            assert "Miso" in notes(tmp_path)

    asyncio.run(main())


def test_c21a_the_limit_that_a_service_names_is_used(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply:
        return Reply(text=(DIGEST,)) if is_digest(seen) else Reply(text=("fine",))

    async def main() -> None:
        await long_history(tmp_path)
        rules = Rules(max_characters=LIMIT)
        async with FakeOpenAI(script, rules=rules) as server, stage(tmp_path, server) as one:
            await one.say("and now?")
            assert one.replies[-1] == "fine"
            assert len(server.refusals) == 1

    asyncio.run(main())


def useless(tmp_path: Path, digest: Callable[[], Reply]) -> None:
    async def main() -> None:
        await long_history(tmp_path)
        async with FakeOpenAI(too_long(digest)) as server, stage(tmp_path, server) as one:
            before = entries_of(one)
            await one.say("and now?")
            assert one.replies[-2] == "fine"
            assert "no summary could be made" in one.replies[-1]
            assert len(server.requests) <= 8
            assert [made.how for made in reductions(one)] == ["reduced"]
            assert entries_of(one)[: len(before)] == before
            asked = len(server.requests)
            await one.say("and then?")
            assert one.replies[-1] == "fine"
            assert len(server.requests) == asked + 1, "no second try within the back-off"

    asyncio.run(main())


def test_c21b_a_summariser_that_never_answers_costs_little_and_the_turn_goes_on(tmp_path: Path) -> None:
    useless(tmp_path, lambda: Reply(text=("a",), cut_after=1))


def test_c21c_a_summary_as_long_as_what_it_sums_up_is_of_no_use(tmp_path: Path) -> None:
    useless(tmp_path, lambda: Reply(text=("blah " * 6_000,)))


def test_c23b_a_message_during_a_compaction_is_answered_once_and_word_for_word(tmp_path: Path) -> None:
    async def main() -> None:
        await long_history(tmp_path)
        reached = asyncio.Event()

        def digest() -> Reply:
            reached.set()
            return Reply(text=(DIGEST,), delay=0.3)

        async with FakeOpenAI(too_long(digest)) as server, stage(tmp_path, server) as one:
            async with asyncio.TaskGroup() as group:
                group.create_task(one.say("first question"))
                await reached.wait()
                group.create_task(one.say("second question"))
            said = [
                block.text
                for entry in entries_of(one)
                if isinstance(entry.payload, UserEntry)
                for block in entry.payload.message.content
                if hasattr(block, "text")
            ]
            assert said[-2:] == ["first question", "second question"]
            assert server.requests[-1].raw.decode().count("second question") == 1
            assert one.replies[-1] == "fine"
            states = one.services.store.read(lambda c: c.execute("SELECT DISTINCT state FROM inbox").fetchall())
            assert states == [("done",)]

    asyncio.run(main())


def test_c25c_what_the_provider_counted_decides_not_the_estimate(tmp_path: Path) -> None:
    """78,133 tokens were counted where the estimate says far less; the limit of this window is about 70,000."""
    window = 86_384
    assert 69_000 < room_of(window).limit <= 70_000
    profile = structs.replace(profile_of("openai", "gpt-4o"), window=window)

    def script(seen: Seen) -> Reply:
        return Reply(text=(DIGEST,)) if is_digest(seen) else Reply(text=("fine",), usage=(78_133, 10))

    async def main() -> None:
        async with FakeOpenAI(script) as server, stage(tmp_path, server, window=profile.window) as one:
            await one.say("tale " * 4_000)
            await one.say("tale " * 4_000)
            assert len(reductions(one)) == 1
            (made,) = reductions(one)
            assert made.tokens_before >= 78_133
            flushed = [entry.payload for entry in entries_of(one) if isinstance(entry.payload, Flush)]
            (line,) = (line for flush in flushed for line in flush.lines)
            assert line.startswith("- The cat is called Miso. <!-- ")

    asyncio.run(main())
