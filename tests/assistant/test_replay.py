"""Replay: recorded turns give the same requests again, and run again without touching the world."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant.conversation import Conversation
from limpet.assistant.replay import replay
from limpet.assistant.services import Services
from limpet.errors import InputError
from limpet.llm.build import build
from limpet.llm.choose import Choice
from limpet.llm.profiles import profile_of
from limpet.session.recording import from_json, lines, recording_of, requests_of, to_json
from limpet.store import entries, sessions
from limpet.testing.fakes import Call, FakeAnthropic, FakeBedrock, FakeGemini, FakeOpenAI, FakeResponses, Reply
from limpet.testing.fakes.server import FakeServer
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.types.entry import AssistantEntry, Entry
from limpet.types.message import Request
from limpet.types.profile import Wire
from tests.assistant.room import KEY, Ledger, home, said
from tests.cases.stage import stage


def log_of(services: Services) -> list[Entry]:
    session = services.store.read(lambda connection: sessions.live(connection, KEY))
    assert session is not None
    return services.store.read(lambda connection: entries.load(connection, session.id))


def newest_turn(services: Services) -> str:
    return [entry.turn for entry in log_of(services) if entry.turn][-1]


def work(request: Request) -> Answer:
    """Calls twice, then answers."""
    asked = sum(len(message.content) for message in request.messages)
    match asked % 3:
        case 0:
            return Answer(calls=(call("act", {"word": f"w{asked}"}), call("look")))
        case _:
            return Answer(text=f"done {asked}")


async def worked(folder: Path, script: list[Step], messages: list[str]) -> tuple[list[Entry], str, ScriptedModel]:
    model = ScriptedModel(script, forever=True)
    ledger = Ledger(folder)
    async with home(folder, model, tools=ledger.tools()) as (services, _):
        talk = Conversation(services, KEY)
        for text in messages:
            await talk.send(said(text))
        return log_of(services), newest_turn(services), model


def test_requests_are_rebuilt_from_the_log_as_they_were_made(tmp_path: Path) -> None:
    log, _, model = asyncio.run(worked(tmp_path, [work], ["one", "two", "three"]))
    turns = list(dict.fromkeys(entry.turn for entry in log if isinstance(entry.payload, AssistantEntry)))
    rebuilt = [request for turn in turns for request in requests_of(recording_of(log, turn))]
    assert rebuilt == model.requests


SERVICES: dict[Wire, tuple[Callable[..., FakeServer], str]] = {
    "openai_chat": (FakeOpenAI, "openai/gpt-4o"),
    "openai_responses": (FakeResponses, "openai/gpt-5.6-terra"),
    "anthropic": (FakeAnthropic, "anthropic/claude-sonnet-5-5"),
    "gemini": (FakeGemini, "gemini/gemini-3.8-flash"),
    "bedrock": (FakeBedrock, "bedrock/us.anthropic.claude-sonnet-4-5-v1:0"),
}


@pytest.mark.parametrize("wire", list(SERVICES))
def test_the_bytes_on_the_wire_are_the_same_again(tmp_path: Path, wire: Wire) -> None:
    """What the service got is what it gets when the rebuilt requests are sent to it."""
    listing = Reply(text=("Looking.",), calls=(Call("list_dir", '{"path":"."}'),))
    script = [listing, Reply(text=("Nothing there.",)), Reply(text=("Goodbye.",))]

    server, reference = SERVICES[wire]

    async def main() -> None:
        async with server(script) as first, stage(tmp_path, first, reference, wire=wire) as one:
            await one.say("what is there?")
            await one.say("bye")
            log = log_of(one.services)
            sent = [seen.raw for seen in first.requests]
        async with server(script) as second:
            provider, _, name = reference.partition("/")
            profile = profile_of(provider, name, base_url=second.base_url, wire=wire)
            model = build(Choice(profile=profile, key=second.key, reason=""))
            turns = list(dict.fromkeys(entry.turn for entry in log if entry.turn))
            for request in [request for turn in turns for request in requests_of(recording_of(log, turn))]:
                async for _ in model.stream(request):
                    pass
            await model.close()
            assert len(sent) == 3
            assert [seen.raw for seen in second.requests] == sent

    asyncio.run(main())


def test_a_forks_requests_name_the_cache_of_their_origin_again(tmp_path: Path) -> None:
    async def main() -> None:
        model = ScriptedModel([work], forever=True)
        async with home(tmp_path, model, tools=Ledger(tmp_path).tools()) as (services, _):
            await Conversation(services, KEY).send(said("one"))
            await Conversation(services, KEY).send(said("/fork side"))
            await Conversation(services, "agent:main:cli:side").send(said("two"))
            row = services.store.read(lambda c: sessions.live(c, "agent:main:cli:side"))
            assert row is not None
            log = services.store.read(lambda c: entries.load(c, row.id))
            recording = recording_of(log, log[-1].turn, cache_key=row.cache_key)
            recording = from_json(to_json(recording), name="x")
            made = requests_of(recording)
            assert made == model.requests[-len(made) :]
            assert made[0].cache_key
            assert (await replay(services, recording, model=None, texts=True)).same

    asyncio.run(main())


def test_a_recorded_turn_replays_to_the_same_and_touches_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        log, turn, _ = await worked(tmp_path, [work], ["one", "two", "three"])
        before = (tmp_path / "side.txt").read_text()
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            stored = log_of(services)
            recording = from_json(to_json(recording_of(log, turn)), name="x")
            found = await replay(services, recording, model=None, texts=True)
            assert (found.difference, found.error) == ((), "")
            assert (tmp_path / "side.txt").read_text() == before
            assert log_of(services) == stored

    asyncio.run(main())


def test_a_turn_with_steering_replays_to_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        hold = Answer(calls=(call("act", {"word": "a"}),), delay=0.2)
        model = ScriptedModel([hold, "first", "second"])
        ledger = Ledger(tmp_path)
        async with home(tmp_path, model, tools=ledger.tools()) as (services, _):
            talk = Conversation(services, KEY)
            async with asyncio.TaskGroup() as group:
                group.create_task(talk.send(said("begin")))
                await asyncio.sleep(0.05)
                group.create_task(talk.send(said("and this")))
            recording = recording_of(log_of(services), newest_turn(services))
            assert any("and this" in line for line in lines(recording.during))
            assert (await replay(services, recording, model=None, texts=True)).same

    asyncio.run(main())


def test_another_model_is_answered_from_the_record_and_the_difference_is_shown(tmp_path: Path) -> None:
    async def main() -> None:
        script: list[Step] = [Answer(calls=(call("act", {"word": "a"}),)), "It is done."]
        log, turn, _ = await worked(tmp_path, script, ["do it"])
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            recording = recording_of(log, turn)
            alike = ScriptedModel([Answer(calls=(call("act", {"word": "a"}),)), "Finished!"])
            assert (await replay(services, recording, model=alike, texts=False)).same
            assert "did a" in str(alike.requests[1].messages)
            other = ScriptedModel([Answer(calls=(call("act", {"word": "b"}),)), "Finished!"])
            found = await replay(services, recording, model=other, texts=False)
            assert '-call   act {"word":"a"}' in found.difference
            assert '+call   act {"word":"b"}' in found.difference
            assert "not in the record" in str(other.requests[1].messages)

    asyncio.run(main())


def test_a_change_of_the_loop_is_found(tmp_path: Path) -> None:
    """A record whose answer belongs to another request than the loop makes now fails, and says why."""

    async def main() -> None:
        log, turn, _ = await worked(tmp_path, ["hello"], ["hi"])
        recording = recording_of(log, turn)
        last = recording.entries[-1]
        assert isinstance(last.payload, AssistantEntry)
        changed = structs.replace(last, payload=structs.replace(last.payload, tool_choice="none"))
        twice = structs.replace(recording, entries=(*recording.entries[:-1], changed, structs.replace(last, id="z")))
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            found = await replay(services, twice, model=None, texts=True)
            assert not found.same

    asyncio.run(main())


def test_a_turn_without_answers_needs_a_model(tmp_path: Path) -> None:
    async def main() -> None:
        log, turn, _ = await worked(tmp_path, ["hello"], ["hi"])
        cut = recording_of(log[:-1], turn)
        async with home(tmp_path, ScriptedModel([])) as (services, _):
            with pytest.raises(InputError, match="No answer"):
                await replay(services, cut, model=None, texts=True)

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"limpet_replay":99,"turn":"t","entries":[]}', b"\xff"])
def test_files_that_are_no_recordings_are_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        from_json(data, name="x.json")
