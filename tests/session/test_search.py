"""Search over transcripts: what was said is found with what stands around it, each entry once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.session import search
from limpet.session.search import Hit, Place
from limpet.testing.scripted import Answer, ScriptedModel, call
from tests.assistant.room import KEY, Ledger, home, said


async def find(services: Services, words: str, **options: int) -> list[Hit]:
    while await services.store.write(search.fill):
        pass
    return services.store.read(lambda connection: search.search(connection, words, **options))


def told(hit: Hit) -> list[str]:
    return [f"{search.who(entry)}: {search.spoken(entry)}" for entry in hit.around]


def test_a_hit_comes_with_what_stands_around_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["Noted.", "Tuesday.", "Sure."])) as (services, _):
            talk = Conversation(services, KEY)
            for text in ("I am allergic to peanuts", "When is the meeting?", "Thanks"):
                await talk.send(said(text))
            (hit,) = await find(services, "meetings")
            assert told(hit) == ["agent: Noted.", "you: When is the meeting?", "agent: Tuesday."]
            assert hit.session.key == KEY
            near = services.store.read(lambda c: search.neighbours(c, hit.place, count=9))
            assert len(near) == 6

    asyncio.run(main())


def test_what_tools_gave_is_found_and_what_limpet_adds_is_not(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([Answer(calls=(call("look", {"word": "quagga"}),)), "done"])
        async with home(tmp_path, model, tools=Ledger(tmp_path).tools()) as (services, _):
            await Conversation(services, KEY).send(said("go"))
            (hit,) = await find(services, "quagga")
            assert "look: saw quagga" in told(hit)
            assert await find(services, "runtime") == []
            assert await find(services, '" OR * NEAR(') == []

    asyncio.run(main())


def test_chinese_is_found_by_a_part_of_a_sentence(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["好的"])) as (services, _):
            await Conversation(services, KEY).send(said("每隔一周的周二上午十点开季度预算会议"))
            assert len(await find(services, "预算会议")) == 1
            assert len(await find(services, "周")) == 1

    asyncio.run(main())


def test_copies_in_forks_are_one_hit_and_new_entries_are_found(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["ok", "ok"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("the walrus sleeps"))
            await talk.send(said("/fork deep"))
            assert len(await find(services, "walrus")) == 1
            await Conversation(services, "agent:main:cli:deep").send(said("the walrus wakes"))
            assert len(await find(services, "walrus")) == 2
            (fork,) = await find(services, "walrus wakes")
            assert fork.session.key == "agent:main:cli:deep"
            only = services.store.read(lambda c: search.search(c, "walrus sleeps", within=[fork.session.id]))
            assert [hit.place.session for hit in only] == [fork.session.id]

    asyncio.run(main())


def test_any_word_counts_where_no_entry_has_all(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["ok", "ok"])) as (services, _):
            for text in ("red fox", "blue whale"):
                await Conversation(services, KEY).send(said(text))
            assert len(await find(services, "fox whale")) == 2
            assert len(await find(services, "fox whale", limit=1)) == 1
            assert await find(services, "unicorn") == []

    asyncio.run(main())


def test_the_part_shown_is_the_one_with_the_word() -> None:
    text = "a " * 300 + "needle " + "b " * 300
    shown = search.about(text, "needle", length=60)
    assert "needle" in shown
    assert len(shown) <= 64
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert search.about("short", "x", length=60) == "short"
    assert Place("s", 4).anchor == "s:4"
