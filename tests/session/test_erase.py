"""Erasure: what was said is gone, everywhere Limpet keeps it, and the log is still one."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, structs

from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.errors import InputError
from limpet.session import erase, search
from limpet.session.hollow import ERASED, hollow
from limpet.session.log import Log
from limpet.session.project import project
from limpet.store import entries, forks, inbox, removal, sessions
from limpet.testing.scripted import Answer, ScriptedModel, call
from limpet.types.codec import decode_payload, encode_payload
from limpet.types.content import Image, Opaque, Text
from limpet.types.entry import Compaction, Entry, Flush, PromptEntry, Section, Tombstone, UserEntry
from limpet.types.message import Request, UserMessage
from tests.assistant.room import HERE, KEY, Ledger, home, replies, said
from tests.session.logs import any_log
from tests.session.test_project import check

SECRET = "zebra-crossing-4711"


@given(any_log(), st.data())
def test_any_log_with_any_erased_entries_projects_to_what_providers_accept(
    log: list[Entry], data: st.DataObject
) -> None:
    erased = data.draw(st.sets(st.integers(0, len(log) - 1)))
    left = [
        structs.replace(entry, payload=hollow(entry.payload) or entry.payload) if place in erased else entry
        for place, entry in enumerate(log)
    ]
    check(project(left))
    Log(left)


@given(any_log())
def test_a_tombstone_keeps_the_kind_and_nothing_else(log: list[Entry]) -> None:
    for entry in log:
        rest = hollow(entry.payload)
        if rest is not None:
            stone = Tombstone("0" * 64, at=1, why="test", rest=Raw(encode_payload(rest)))
            again = decode_payload(encode_payload(stone))
            assert isinstance(again, Tombstone)
            assert decode_payload(bytes(again.rest)) == rest
            assert type(rest) is type(entry.payload)
            assert hollow(rest) == rest


def test_what_a_newer_version_wrote_can_be_erased_too() -> None:
    assert hollow(Opaque(Raw(b'{"kind":"novel","text":"x"}'))) == Opaque(Raw(b'{"kind":"erased"}'))


def on_disk(folder: Path, word: str) -> list[str]:
    """The files of a home that hold a word. Another process looks: to close a database's file here would unlock it."""
    found = subprocess.run(["grep", "-rla", word, str(folder)], capture_output=True, text=True)
    return found.stdout.split()


def live(services: Services, key: str = KEY) -> sessions.SessionRow:
    row = services.store.read(lambda connection: sessions.live(connection, key))
    assert row is not None
    return row


async def indexed(services: Services) -> None:
    while await services.store.write(search.fill):
        pass


def entry_with(services: Services, session: str, kind: type) -> Entry:
    log = services.store.read(lambda connection: entries.load(connection, session))
    return next(entry for entry in log if isinstance(entry.payload, kind))


async def erased(services: Services, session: str, entry: str = "") -> erase.Removed:
    made = await services.store.write(lambda c: erase.erase(c, session, entry, owner=services.owner, now=7))
    await services.store.scrub()
    return made


def words(request: Request) -> list[str]:
    return [block.text for message in request.messages for block in message.content if isinstance(block, Text)]


def test_an_erased_message_is_gone_from_the_disk_and_the_talk_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel(["fine", "yes"])
        async with home(tmp_path, model) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said(f"my word is {SECRET}"))
            await indexed(services)
            assert len(on_disk(tmp_path, "zebra")) == 1
            entry = entry_with(services, live(services).id, UserEntry)
            made = await erased(services, live(services).id, entry.id)
            assert made.entries == 1
            assert on_disk(tmp_path, "zebra") == []
            assert services.store.read(lambda c: search.search(c, SECRET)) == []
            await talk.send(said("and now?"))
            assert words(model.requests[-1]) == [ERASED, "fine", "and now?"]
            again = entry_with(services, live(services).id, UserEntry)
            assert len(again.erased) == 64

    asyncio.run(main())


def test_an_erased_session_keeps_calls_with_their_results(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([Answer(text=SECRET, calls=(call("look", {"word": SECRET}),)), f"it is {SECRET}", "hm"])
        async with home(tmp_path, model, tools=Ledger(tmp_path).tools()) as (services, _):
            talk = Conversation(services, KEY)
            await talk.send(said(f"look for {SECRET}"))
            await erased(services, live(services).id)
            assert on_disk(tmp_path, SECRET) == []
            assert replies(services) == [removal.GONE]
            await talk.send(said("what was it?"))
            check(model.requests[-1].messages)
            assert len(model.requests[-1].messages) == 5
            assert model.requests[-1].system == "You are Limpet.", "the prompt is made anew"

    asyncio.run(main())


def test_copies_in_forks_and_summaries_go_with_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["fine", "hm"])) as (services, _):
            await Conversation(services, KEY).send(said(f"my word is {SECRET}"))
            row = live(services)
            lease = await services.store.write(lambda c: sessions.claim(c, row.id, owner=services.owner))
            first = entry_with(services, row.id, UserEntry)
            summary = Compaction(summary=f"They said {SECRET}.", first_kept=first.id)
            flush = Flush(upto=first.id, path="memory/2026-01-01.md", lines=(f"- {SECRET}",))
            for payload in (summary, flush):
                await services.store.write(lambda c, p=payload: entries.append(c, lease, p, turn="", now=1))
            await services.store.write(lambda c: sessions.release(c, lease))
            services.owner.held.clear()
            log = services.store.read(lambda c: entries.load(c, row.id))
            copy = await services.store.write(lambda c: forks.fork(c, row, log, key="agent:main:cli:copy", now=2))
            other = await services.store.write(lambda c: sessions.open_live(c, "agent:main:cli:x", agent="main", now=3))
            lease = await services.store.write(lambda c: sessions.claim(c, other.id, owner=services.owner))
            prompt = PromptEntry(sections=(Section("recent history", f"- {SECRET}"),), tools=())
            await services.store.write(lambda c: entries.append(c, lease, prompt, turn="", now=1))
            await services.store.write(lambda c: sessions.release(c, lease))
            services.owner.held.clear()
            made = await erased(services, row.id, first.id)
            assert set(made.sessions) == {row.id, copy}
            assert made.files == ("memory/2026-01-01.md",)
            assert on_disk(tmp_path, SECRET) == []

    asyncio.run(main())


def test_only_blobs_that_nothing_else_needs_go(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a", "b"])) as (services, _):
            own, shared = [await services.blobs.put(data) for data in (b"own", b"shared")]
            talk = Conversation(services, KEY)
            pictures = [Image(blob=blob, mime="image/png") for blob in (own, shared)]
            await talk.send(structs.replace(said("two"), images=tuple(pictures)))
            await talk.send(structs.replace(said("one"), images=(pictures[1],)))
            entry = entry_with(services, live(services).id, UserEntry)
            assert (await erased(services, live(services).id, entry.id)).blobs == (own,)

    asyncio.run(main())


def test_nothing_is_erased_under_a_running_turn(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel([Answer(text="a", hang=True)])) as (services, _):
            talk = Conversation(services, KEY)
            task = asyncio.create_task(talk.send(said("one")))
            while services.store.read(lambda c: inbox.queued(c, KEY)) or not talk.control:
                await asyncio.sleep(0.01)
            with pytest.raises(InputError, match="runs, or was interrupted"):
                await erased(services, live(services).id)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())


def test_the_redelivery_of_an_erased_event_is_still_known(tmp_path: Path) -> None:
    async def main() -> None:
        async with home(tmp_path, ScriptedModel(["a"])) as (services, _):
            await Conversation(services, KEY).send(said(SECRET, event="m1"))
            await erased(services, live(services).id)
            row, new = await services.store.write(lambda c: inbox.receive(c, KEY, said(SECRET, event="m1"), now=9))
            assert not new
            assert row.inbound.text == removal.GONE
            assert row.inbound.address == HERE

    asyncio.run(main())


def test_the_message_of_erased_words_is_the_projection_of_none() -> None:
    assert hollow(UserEntry(UserMessage((Text("x"),), runtime="<r>"), sender="Ada", inbox=3)) == UserEntry(
        UserMessage((Text(ERASED),)), inbox=3
    )
