"""C30: whatever the model answers, memory gains or stays as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from limpet.assistant.consolidate import INSIST, UselessAnswerError, consolidate, fresh, when_due
from limpet.assistant.remembering import Remembering
from limpet.errors import UpstreamError
from limpet.llm.embedded import Embedded, EmbeddedLimits, find_embedded
from limpet.llm.profiles import profile_of
from limpet.memory import consolidated
from limpet.memory.entries import lost, too_many
from limpet.testing.clock import FakeClock
from limpet.testing.scripted import Answer, ScriptedModel, Step, call
from limpet.types.content import Text
from limpet.types.event import Notice
from limpet.types.message import Request, UserMessage
from tests.assistant.room import KEY, home

DAY = "memory/2026-02-02.md"
ODD: list[object] = [
    {"memory": {"facts": ["likes tea"]}, "history": ["h1"]},
    {"memory": "# Memory\n\n- likes tea\n", "history_entry": "h1"},
    {"add": [{"text": "likes tea", "from": ["zzz"]}], "replace": [], "drop": [], "history": "h1"},
    {"facts": "likes tea", "history": {"text": "h1"}, "drop": None, "replace": "no list"},
]


def notes(folder: Path, text: str = "- A <!-- 2026-02-02 10:00 noted -->\n") -> None:
    (folder / "memory").mkdir(exist_ok=True)
    (folder / DAY).write_text(text)


def lasting(folder: Path) -> str:
    path = folder / "MEMORY.md"
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("arguments", ODD)
def test_c30_a_odd_arguments_are_understood(tmp_path: Path, arguments: object) -> None:
    async def main() -> None:
        notes(tmp_path)
        model = ScriptedModel([Answer(calls=(call("save_memory", arguments),))])
        async with home(tmp_path, model) as (services, _):
            known = Remembering(services, KEY)
            done = await consolidate(known)
            assert "+- likes tea" in done.diff
            assert "- likes tea <!--" in lasting(tmp_path)
            assert "notes of 2026-02-02 -->" in lasting(tmp_path)
            assert "h1" in (tmp_path / "memory/HISTORY.md").read_text()
            assert fresh(known) == []

    asyncio.run(main())


@pytest.mark.parametrize("second", [Answer(calls=(call("save_memory", {"add": ["likes tea"]}),)), "Sure:\n* likes tea"])
def test_c30_b_text_is_asked_about_once_more_and_then_taken_as_it_is(tmp_path: Path, second: Step) -> None:
    async def main() -> None:
        notes(tmp_path)
        model = ScriptedModel(["I will remember that.", second])
        async with home(tmp_path, model) as (services, _):
            await consolidate(Remembering(services, KEY))
            assert "likes tea" in lasting(tmp_path)
            assert len(model.requests) == 2
            assert [spec.name for spec in model.requests[1].tools] == ["save_memory"]
            (again,) = model.requests[1].messages
            assert isinstance(again, UserMessage)
            assert INSIST in "".join(one.text for one in again.content if isinstance(one, Text))

    asyncio.run(main())


@pytest.mark.parametrize("step", ["Well.", UpstreamError("no connection", provider="scripted")])
def test_c30_c_a_failure_changes_nothing_waits_and_is_told_after_three(tmp_path: Path, step: Step) -> None:
    async def main() -> None:
        notes(tmp_path)
        async with home(tmp_path, ScriptedModel([step], forever=True)) as (services, trace):
            clock, known = services.clock, Remembering(services, KEY)
            assert isinstance(clock, FakeClock)
            for number in (1, 2, 3):
                assert await when_due(services, KEY)
                assert not await when_due(services, KEY), "not at once again"
                state = services.store.read(lambda connection: consolidated.state(connection, ""))
                assert state.failures == number
                assert len(fresh(known)) == 1
                told = [one for one in trace.events if isinstance(one, Notice) and "3 times" in one.text]
                assert len(told) == (number == 3)
                clock.advance(24 * 3600)
            assert lasting(tmp_path) == ""
            assert not (tmp_path / "memory/HISTORY.md").exists()

    asyncio.run(main())


def test_nothing_strangers_had_a_part_in_is_shown_or_promoted(tmp_path: Path) -> None:
    async def main() -> None:
        notes(tmp_path, "- A\n- evil rule <!-- 2026-02-02 10:00 s1; external -->\n")
        model = ScriptedModel([Answer(calls=(call("save_memory", {}),))])
        async with home(tmp_path, model) as (services, _):
            known = Remembering(services, KEY)
            await known.add("another evil rule", trust="external")
            await consolidate(known)
            assert "evil" not in str(model.requests)

    asyncio.run(main())


def answering(make: dict[str, str], **arguments: object) -> Step:
    """An answer whose ids are those of the entries in the request that hold the words of `make`."""

    def step(request: Request) -> Answer:
        text = str(request.messages)
        ids = {name: text.split(f"] ({words}")[0][-6:] for name, words in make.items()}

        def filled(value: object) -> object:
            if isinstance(value, str):
                return ids.get(value, value)
            if isinstance(value, list):
                return [filled(one) for one in value]  # pyright: ignore
            return {key: filled(one) for key, one in value.items()} if isinstance(value, dict) else value  # pyright: ignore

        return Answer(calls=(call("save_memory", filled(arguments)),))

    return step


def test_the_newer_wins_the_older_stays_in_the_history_and_all_is_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        mark = "<!-- 2026-01-01 09:00 said -->"
        old = f"# Memory\n\n- Lives in Porto {mark}\n- Mine\n- Likes tea {mark}\n"
        (tmp_path / "MEMORY.md").write_text(old)
        notes(tmp_path, "- Moved to Lisbon\n")
        change = {"id": "porto", "text": "Lives in Lisbon", "from": ["note"]}
        step = answering(
            {"porto": "2026-01-01) Lives", "note": "2026-02-02) Moved"}, replace=[change], history="He moved."
        )
        async with home(tmp_path, ScriptedModel([step])) as (services, _):
            known = Remembering(services, KEY)
            await consolidate(known)
            assert "Porto" not in lasting(tmp_path)
            assert "- Lives in Lisbon <!--" in lasting(tmp_path)
            assert "- Mine\n" in lasting(tmp_path)
            history = (tmp_path / "memory/HISTORY.md").read_text()
            assert "He moved." in history
            assert "Lives in Porto" in history
            assert history.startswith("[20")
            await known.undo()
            assert lasting(tmp_path) == old

    asyncio.run(main())


def test_what_is_the_owners_own_or_newer_is_left_alone(tmp_path: Path) -> None:
    async def main() -> None:
        old = "- Mine is old\n- Lives in Faro <!-- 2026-03-01 09:00 said -->\n"
        (tmp_path / "MEMORY.md").write_text(old)
        notes(tmp_path, "- Moved to Lisbon\n")
        change = {"id": "faro", "text": "Lives in Lisbon", "from": ["note"]}
        own = {"mine": ") Mine is"}
        step = answering(
            {"faro": "2026-03-01) Lives", "note": "2026-02-02) Moved", **own}, replace=[change], drop=["mine"]
        )
        async with home(tmp_path, ScriptedModel([step])) as (services, _):
            done = await consolidate(Remembering(services, KEY))
            assert lasting(tmp_path) == old
            assert any("newer" in one for one in done.left)

    asyncio.run(main())


def test_never_over_a_quarter_in_one_go_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        words = ("apples", "pears", "plums", "figs")
        old = "".join(f"- {word} <!-- 2026-01-0{n} 09:00 said -->\n" for n, word in enumerate(words, 1))
        (tmp_path / "MEMORY.md").write_text(old)
        notes(tmp_path)
        make = {word: f"2026-01-0{n}) {word}" for n, word in enumerate(words, 1)}
        step = answering(make, drop=["apples", "pears", "plums"], add=["likes tea"])
        async with home(tmp_path, ScriptedModel([step], forever=True)) as (services, _):
            known = Remembering(services, KEY)
            assert "likes tea" in (await consolidate(known, dry_run=True)).diff
            assert lasting(tmp_path) == old
            assert len(fresh(known)) == 1
            done = await consolidate(known)
            assert lasting(tmp_path).startswith(old)
            assert "likes tea" in lasting(tmp_path)
            assert "quarter" in done.left[0]

    asyncio.run(main())


def test_an_owners_edit_while_the_model_thinks_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        notes(tmp_path)
        (tmp_path / "MEMORY.md").write_text("- One\n")

        def step(request: Request) -> Answer:
            (tmp_path / "MEMORY.md").write_text("- One\n- Written meanwhile\n")
            return Answer(calls=(call("save_memory", {"add": ["likes tea"]}),))

        async with home(tmp_path, ScriptedModel([step])) as (services, _):
            await consolidate(Remembering(services, KEY))
            assert "Written meanwhile" in lasting(tmp_path)
            assert "likes tea" in lasting(tmp_path)

    asyncio.run(main())


def test_useless_answers_raise(tmp_path: Path) -> None:
    async def main() -> None:
        notes(tmp_path)
        async with home(tmp_path, ScriptedModel(["no", "no"])) as (services, _):
            with pytest.raises(UselessAnswerError):
                await consolidate(Remembering(services, KEY))

    asyncio.run(main())


@pytest.mark.skipif(not find_embedded(), reason="needs the embedded model")
def test_a_small_real_model_loses_nothing(tmp_path: Path) -> None:
    """Whatever it answers, the owner's entries and three quarters of the others stand, or all and the notes wait."""
    old = "".join(f"- fact {word} <!-- 2026-01-01 10:00 said -->\n" for word in ("one", "two", "three", "four", "five"))
    before = f"# Memory\n\n- Mine: no flights before nine\n{old}"

    async def main() -> None:
        (tmp_path / "MEMORY.md").write_text(before)
        notes(tmp_path, "- Moved to Lisbon <!-- 2026-02-02 10:00 noted -->\n- Soup <!-- 2026-02-02 12:00 noted -->\n")
        profile = profile_of("embedded", "small", base_url=find_embedded())
        model = Embedded(profile, limits=EmbeddedLimits(answer=60))
        async with home(tmp_path, model) as (services, _):
            known = Remembering(services, KEY)
            try:
                await consolidate(known)
            except UselessAnswerError:
                assert lasting(tmp_path) == before
                assert len(fresh(known)) == 2
        await model.close()
        assert "- Mine: no flights before nine" in lasting(tmp_path)
        assert not too_many(len(lost(before, lasting(tmp_path))), 6)

    asyncio.run(main())
