"""Rewind, fork and label: moves in the tree of a session, given as people give them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.store import entries, forks, sessions
from limpet.testing.scripted import ScriptedModel
from limpet.types.entry import Compaction, Entry
from limpet.types.message import Request
from tests.assistant.room import KEY, home, replies, said


def words(request: Request) -> list[str]:
    return [block.text for message in request.messages for block in message.content if hasattr(block, "text")]  # pyright: ignore


def log_of(services: Services, key: str) -> list[Entry]:
    live = services.store.read(lambda connection: sessions.live(connection, key))
    assert live is not None
    return services.store.read(lambda connection: entries.load(connection, live.id))


def test_rewind_goes_back_to_before_a_message_and_deletes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["a", "b", "c", "d"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            for text in ("one", "two", "three"):
                await talk.send(said(text))
            before = log_of(services, KEY)
            await talk.send(said("/rewind 2"))
            assert "after “one”" in replies(services)[-1]
            await talk.send(said("four"))
            assert words(model.requests[-1]) == ["one", "a", "four"]
            assert log_of(services, KEY)[: len(before)] == before

    asyncio.run(main())


def test_rewind_alone_lists_the_places_and_a_wrong_number_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a", "b"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("/rewind"))
            assert replies(services)[-1] == "Nothing was said here yet."
            await talk.send(said("one"))
            await talk.send(said("two"))
            await talk.send(said("/rewind"))
            assert replies(services)[-1].splitlines()[:2] == [" 1  two", " 2  one"]
            await talk.send(said("/rewind 7"))
            assert "There is no message 7" in replies(services)[-1]

    asyncio.run(main())


def test_rewind_to_the_very_beginning_and_on(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["a", "b"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            await talk.send(said("/rewind 1"))
            assert "at its beginning" in replies(services)[-1]
            await talk.send(said("two"))
            assert words(model.requests[-1]) == ["two"]
            assert model.requests[1].system == model.requests[0].system

    asyncio.run(main())


def test_a_label_brings_one_back_also_from_another_branch(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["a", "b", "c", "d"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            await talk.send(said("/label good idea"))
            await talk.send(said("two"))
            await talk.send(said("/rewind 2"))
            await talk.send(said("three"))
            await talk.send(said("/rewind good idea"))
            await talk.send(said("four"))
            assert words(model.requests[-1]) == ["one", "a", "four"]
            await talk.send(said("/label"))
            assert replies(services)[-1] == "labels: good idea"
            await talk.send(said("/label 12"))
            assert "is not a label" in replies(services)[-1]

    asyncio.run(main())


def test_rewind_across_a_compaction_shows_the_older_entries_again(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["a", "b", "c"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            await talk.send(said("two"))
            kept = next(entry.id for entry in log_of(services, KEY) if entry.seq == 4)
            live = services.store.read(lambda connection: sessions.live(connection, KEY))
            assert live is not None
            lease = await services.store.write(lambda c: sessions.claim(c, live.id, owner=services.owner))
            made = Compaction(summary="one was said", first_kept=kept)
            await services.store.write(lambda c: entries.append(c, lease, made, turn="", now=1))
            await services.store.write(lambda c: sessions.release(c, lease))
            services.owner.held.discard(live.id)
            await talk.send(said("/rewind 1"))
            await talk.send(said("three"))
            assert words(model.requests[-1]) == ["one", "a", "three"]

    asyncio.run(main())


def test_a_fork_continues_with_the_same_prefix_and_leaves_the_origin_alone(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["a", "b", "c", "d"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            await talk.send(said("/label start"))
            await talk.send(said("two"))
            await talk.send(said("/fork idea"))
            assert "--session idea" in replies(services)[-1]
            origin = log_of(services, KEY)
            await Conversation(services, "agent:main:cli:idea").send(said("three"))
            forked = model.requests[-1]
            assert forked.messages[: len(model.requests[-2].messages)] == model.requests[-2].messages
            assert (forked.system, forked.tools) == (model.requests[-2].system, model.requests[-2].tools)
            assert forked.cache_key == model.requests[-2].session
            assert log_of(services, KEY) == origin
            await Conversation(services, "agent:main:cli:idea").send(said("/rewind start"))
            await Conversation(services, "agent:main:cli:idea").send(said("four"))
            assert words(model.requests[-1]) == ["one", "a", "four"]

    asyncio.run(main())


def test_forks_get_names_of_their_own_and_a_used_name_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            for command in ("/fork", "/fork", "/fork fork", "/fork main"):
                await talk.send(said(command))
            made = replies(services)[1:]
            assert "agent:main:cli:fork:" in made[0]
            assert "agent:main:cli:fork-2:" in made[1]
            assert "already" in made[2]
            assert "already" in made[3]

    asyncio.run(main())


def test_a_rewind_waits_until_the_turn_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a", "b"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("one"))
            first = asyncio.create_task(talk.send(said("two")))
            await asyncio.sleep(0)
            await Conversation(services, KEY).send(said("/rewind 1"))
            await first
            assert replies(services)[:2] == ["a", "b"]
            assert "after “one”" in replies(services)[2]

    asyncio.run(main())


def test_a_fork_of_an_empty_session_is_refused_and_of_an_old_one_possible(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("/fork x"))
            assert replies(services)[-1] == "Nothing was said here yet."
            await talk.send(said("one"))
            live = services.store.read(lambda connection: sessions.live(connection, KEY))
            assert live is not None
            await talk.send(said("/new"))
            line = services.store.read(lambda connection: entries.load(connection, live.id))
            name = await services.store.write(lambda c: forks.fork(c, live, line, key="agent:main:cli:old", now=5))
            copied = services.store.read(lambda connection: entries.load(connection, name))
            assert [(entry.id, entry.payload) for entry in copied] == [(entry.id, entry.payload) for entry in line]

    asyncio.run(main())
