"""Memories that go with a message, and the memory tools, in real conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant.conversation import Conversation
from limpet.assistant.memory_scope import scope_of
from limpet.assistant.recalling import Recalling, Recollection
from limpet.assistant.services import Services
from limpet.errors import ToolError
from limpet.memory.library import Library, Patience
from limpet.memory.search import Wanted
from limpet.memory.shelf import Shelf
from limpet.memory.sources import Talks
from limpet.session import erase
from limpet.store import entries, sessions
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.tools.recollect import recollection_tools
from limpet.types.content import Text
from limpet.types.entry import ToolResultEntry, UserEntry
from limpet.types.envelope import Address
from tests.assistant.room import KEY, NoSecrets, PlainPrompting, home, replies, said

NOTES = "- The dentist is Dr. Quandt.\n- Marta likes figs.\n"


@asynccontextmanager
async def remembering(
    folder: Path, model: ScriptedModel, *, on: bool = True, score: float = 0.45, unasked: bool = False
) -> AsyncGenerator[tuple[Services, Recollection]]:
    async with home(folder, model) as (services, _):
        talks = Talks(str(folder / "limpet.db"), "main", lambda at: datetime.fromtimestamp(at / 1000, UTC))
        library = Library(
            Shelf(str(folder / "index"), str(folder), talks),
            today=lambda: datetime(2026, 5, 13, tzinfo=UTC).date(),
            patience=Patience(fresh=0),
        )
        memory = Recollection(
            library,
            services.store,
            NoSecrets(),
            agent="main",
            visibility="agent",
            emit=services.emit,
            recalling=Recalling(on, score, unasked),
            scope=lambda key: scope_of(key, {}),
        )
        await library.recall("warm", _nothing(), seconds=60)
        try:
            yield replace(services, recall=memory, tools=recollection_tools(memory)), memory
        finally:
            await library.close()


def _nothing() -> Wanted:
    return Wanted(1)


def note(folder: Path, text: str = NOTES, path: str = "memory/2026-05-07.md") -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def runtimes(services: Services, key: str = KEY) -> list[str]:
    """The runtime block of each message, in order."""
    live = services.store.read(lambda connection: sessions.live(connection, key))
    assert live is not None
    found = services.store.read(lambda connection: entries.load(connection, live.id))
    return [entry.payload.message.runtime for entry in found if isinstance(entry.payload, UserEntry)]


def test_what_was_noted_goes_with_the_message_that_asks_for_it(tmp_path: Path) -> None:
    note(tmp_path)

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["Quandt.", "Ulan Bator."])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("Who is my dentist?"))
            await talk.send(said("What is the capital of Mongolia?"))
            first, second = runtimes(services)
            assert "Dr. Quandt" in first
            assert "memory/2026-05-07.md:1" in first
            assert "Quandt" not in second

    asyncio.run(main())


def test_what_the_prompt_is_going_to_show_is_not_recalled_beside_it(tmp_path: Path) -> None:
    note(tmp_path)
    note(tmp_path, "- The dentist Dr. Quandt has moved.\n", "memory/2026-05-01.md")

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["a", "b"])) as (services, _):
            shown = PlainPrompting(shown=f"# Recent notes\n\n{NOTES}")
            await Conversation(replace(services, prompting=shown), KEY).send(said("Who is my dentist Quandt?"))
            (runtime,) = runtimes(services)
            assert "has moved" in runtime
            assert "2026-05-07" not in runtime

    asyncio.run(main())


@pytest.mark.parametrize(
    ("key", "channel"), [("cron:tidy", "cron"), ("hook:mail", "hook"), (KEY, "heartbeat"), (f"{KEY}:x", "cron")]
)
def test_nothing_is_recalled_where_nobody_asks_unless_the_owner_wants_it(
    tmp_path: Path, key: str, channel: str
) -> None:
    note(tmp_path)
    asked = structs.replace(said("Who is my dentist?"), address=Address(channel=channel, chat=key))

    async def main(*, unasked: bool) -> str:
        async with remembering(tmp_path / f"{unasked}", ScriptedModel(["a"]), unasked=unasked) as (services, _):
            note(tmp_path / f"{unasked}")
            await Conversation(services, key).send(asked)
            return runtimes(services, key)[0]

    assert "Quandt" not in asyncio.run(main(unasked=False))
    assert "Quandt" in asyncio.run(main(unasked=True))


def test_neither_pending_notes_nor_this_conversation_are_recalled(tmp_path: Path) -> None:
    note(tmp_path, path="memory/pending/2026-05-07.md")

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["a", "b", "c"])) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said("My zeppelin is moored in Lisbon"))
            await talk.send(said("Where is my zeppelin moored?"))
            await talk.send(said("Who is my dentist?"))
            assert not any("Lisbon" in text or "Quandt" in text for text in runtimes(services))

    asyncio.run(main())


def test_earlier_conversations_are_recalled_and_those_of_others_are_not(tmp_path: Path) -> None:
    group = "agent:main:telegram:group:7"

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["noted", "a", "b"])) as (services, _):
            note(tmp_path)
            await Conversation(services, "agent:main:cli:other").send(said("My zeppelin is moored in Lisbon"))
            await Conversation(services, KEY).send(said("Where is my zeppelin moored?"))
            assert "Lisbon" in runtimes(services)[0]
            await Conversation(services, group).send(said("zeppelin moored where? who is the dentist Quandt?"))
            (there,) = runtimes(services, group)
            assert "Lisbon" not in there
            assert "Recalled" not in there

    asyncio.run(main())


def test_the_owner_turns_recall_off_and_on_and_asks_why(tmp_path: Path) -> None:
    note(tmp_path)

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["a", "b", "c"])) as (services, _):
            talk = Conversation(services, KEY)
            for text in ("/recall off", "Who is my dentist?", "/recall why", "/recall on", "who is the dentist?"):
                await talk.send(said(text))
            off, on = runtimes(services)
            assert "Quandt" not in off
            assert "Quandt" in on
            said_off, _, why, *_ = replies(services)
            assert "No memories" in said_off
            assert "if it were on" in why
            assert "1.00 shown: memory/2026-05-07.md:1" in why
            await talk.send(said("/recall maybe"))
            await talk.send(said("/recall"))
            assert "Recall is on" in replies(services)[-1]

    asyncio.run(main())


def test_recall_may_be_off_by_the_settings(tmp_path: Path) -> None:
    note(tmp_path)

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["a"]), on=False) as (services, _):
            await Conversation(services, KEY).send(said("Who is my dentist?"))
            assert "Quandt" not in runtimes(services)[0]

    asyncio.run(main())


def test_the_tools_search_and_read_and_mark_what_came_from_outside(tmp_path: Path) -> None:
    note(tmp_path)
    note(tmp_path, "- The zeppelin is for sale.\n", "memory/pending/2026-05-07.md")
    calls = (
        call("memory_search", {"query": "figs"}),
        call("memory_search", {"query": "zeppelin"}),
        call("memory_search", {"query": "quagga"}),
        call("memory_get", {"path": "memory/2026-05-07.md", "from_line": 2, "lines": 1}),
        call("memory_get", {"path": "../secret.md"}),
    )

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel([Answer(calls=calls), "done"])) as (services, _):
            await Conversation(services, KEY).send(said("go on"))
            live = services.store.read(lambda connection: sessions.live(connection, KEY))
            assert live is not None
            found = services.store.read(lambda connection: entries.load(connection, live.id))
            results = [one.payload.result for one in found if isinstance(one.payload, ToolResultEntry)]
            figs, zeppelin, quagga, lines, secret = ["".join(map(_text, one.content)) for one in results]
            assert "Marta likes figs" in figs
            assert "not confirmed" in zeppelin
            assert [one.trust for one in results[:2]] == ["tool", "external"]
            assert quagga.startswith("Nothing was found")
            assert lines.startswith("- Marta likes figs.\n\n(2 lines")
            assert results[4].is_error
            assert "no memory file" in secret

    asyncio.run(main())


def test_a_group_reads_no_file_of_the_owner(tmp_path: Path) -> None:
    note(tmp_path)
    group = "agent:main:telegram:group:7"

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["a"])) as (services, memory):
            await Conversation(services, group).send(said("hi"))
            live = services.store.read(lambda connection: sessions.live(connection, group))
            assert live is not None
            with pytest.raises(ToolError):
                await memory.get("memory/2026-05-07.md", session=live.id, first=1, lines=9, limit=999)
            text, _ = await memory.search("dentist", session=live.id, most=6, min_score=0.1, limit=999)
            assert text.startswith("Nothing was found")

    asyncio.run(main())


def _text(block: object) -> str:
    return block.text if isinstance(block, Text) else ""


def test_what_is_forgotten_goes_from_what_was_recalled(tmp_path: Path) -> None:
    note(tmp_path)

    async def main() -> None:
        async with remembering(tmp_path, ScriptedModel(["Quandt.", "yes"])) as (services, _):
            await Conversation(services, KEY).send(said("Who is my dentist?"))
            count = await services.store.write(lambda c: erase.unquote(c, ["Dr. Quandt"], now=1))
            assert count == 1
            (left,) = runtimes(services)
            assert "Quandt" not in left
            await Conversation(services, KEY).send(said("Go on"))
            assert len(runtimes(services)) == 2

    asyncio.run(main())
