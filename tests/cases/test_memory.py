"""Concrete inputs of the field on memory: what the flush writes, and when."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest
from msgspec import structs

from limpet.assistant import ending
from limpet.assistant.services import Rules
from limpet.config.schema import EmbeddingPurpose, PurposeSettings
from limpet.llm.http import Http
from limpet.llm.media.desk import Desk, Endpoint
from limpet.llm.media.studio import Studio, Vectors
from limpet.llm.profiles import profile_of
from limpet.memory import vectors
from limpet.memory.index import Within
from limpet.memory.library import Library, Patience
from limpet.memory.search import Wanted
from limpet.session.resets import Reset, due
from limpet.testing.clock import FakeClock
from limpet.testing.fakes import FakeOpenAI, Reply, Seen
from tests.assistant.room import KEY
from tests.cases.stage import Stage, stage
from tests.cases.test_session_context import is_digest, notes
from tests.llm.media import Ledger
from tests.memory.shelves import TODAY, ask, say, shelf_of, write
from tests.memory.test_library import Meanings, asked

WINDOW = 8_000


class Service:
    """Answers briefly, and a digest with the next note of its own; `digests` are the requests for one, in order."""

    def __init__(self, *, overflow: bool = False) -> None:
        self.digests: list[str] = []
        self.overflow = overflow

    def __call__(self, seen: Seen) -> Reply:
        text = seen.raw.decode()
        if is_digest(seen):
            self.digests.append(text)
            note = f"<notes>\n- B{len(self.digests)}\n</notes><summary>All about tales.</summary>"
            return Reply(text=(note,))
        if self.overflow and len(text) > 40_000:
            error = {"error": {"message": "Too long.", "code": "context_length_exceeded"}}
            return Reply(status=400, body=error)
        return Reply(text=("tale " * 300,), usage=(0, 0))


def flushed_twice(
    folder: Path, service: Service, trigger: Callable[[Stage, int], Awaitable[None]], *, window: int = WINDOW
) -> None:
    """Do what triggers a flush twice; what went is in the request, and the day's notes only grow."""

    async def main() -> None:
        async with FakeOpenAI(service) as server, stage(folder, server, window=window) as one:
            file = folder / one.services.notes.file(one.services.clock.now(), "owner")
            file.parent.mkdir()
            file.write_text("A\n")
            for number in (1, 2):
                await trigger(one, number)
                assert len(service.digests) >= number, "on every occasion, not on every second"
                assert any(f"story {number}" in digest for digest in service.digests)
                text = notes(folder)
                assert text.startswith("A\n")
                assert all(f"- B{made}" in text for made in range(1, len(service.digests) + 1))

    asyncio.run(main())


def test_c31_before_a_proactive_compaction(tmp_path: Path) -> None:
    service = Service()

    async def trigger(one: Stage, number: int) -> None:
        before = len(service.digests)
        await one.say(f"story {number}")
        while len(service.digests) == before:
            await one.say("go on " * 100)

    flushed_twice(tmp_path, service, trigger)


def test_c31_on_overflow(tmp_path: Path) -> None:
    service = Service(overflow=True)

    async def trigger(one: Stage, number: int) -> None:
        before = len(service.digests)
        await one.say(f"story {number}")
        while len(service.digests) == before:
            await one.say("go on " * 1_000)

    flushed_twice(tmp_path, service, trigger, window=100_000)


def test_c31_on_new(tmp_path: Path) -> None:
    async def trigger(one: Stage, number: int) -> None:
        await one.say(f"story {number}")
        await one.say("/new")
        assert await ending.close_ended(one.services, KEY) == 1

    flushed_twice(tmp_path, Service(), trigger)


def test_c31_on_a_daily_reset(tmp_path: Path) -> None:
    async def trigger(one: Stage, number: int) -> None:
        clock = one.services.clock
        assert isinstance(clock, FakeClock)

        def resets(key: str, last: int, now: int) -> str:
            return due(Reset(daily=4), last, now, zone=UTC)

        one.talk.services = replace(one.services, rules=Rules(resets=resets))
        await one.say(f"story {number}")
        clock.advance(24 * 3600)
        await one.say("good morning")
        assert await ending.close_ended(one.services, KEY) == 1

    flushed_twice(tmp_path, Service(), trigger)


SCRIPTS = """- 今天玩成语接龙游戏

- 桌面后端watchdog会误杀健康进程

- 오늘 끝말잇기 게임을 했다

- deploy notes for host alpha-7
"""


@pytest.mark.parametrize(
    ("question", "line"),
    [("成语接龙", 1), ("接龙", 1), ("后端", 3), ("watchdog", 3), ("끝말잇기", 5), ("alpha-7", 7), ("ALPHA", 7)],
)
def test_c27_every_script_is_found_at_rank_1_in_notes_and_transcripts(tmp_path: Path, question: str, line: int) -> None:
    write(tmp_path, "memory/notes.md", SCRIPTS)
    session = say(tmp_path, "k", [text.removeprefix("- ") for text in SCRIPTS.split("\n\n")])
    shelf = shelf_of(tmp_path)
    within = (Within(sessions=frozenset()), Within(paths=()))
    for place, one in zip((("memory/notes.md", line), (session, (line + 1) // 2)), within, strict=True):
        hits = shelf.run(lambda index, one=one: index.search(question, today=TODAY, within=one))
        (best,) = shelf.run(lambda index, hits=hits: index.passages([hits[0].id])).values()
        assert (best.place.group, best.origin.first) == place
    shelf.close()


@pytest.mark.parametrize("question", ["火星", '"', "*", "AND", "-", '"a* AND -b NEAR(c', "a OR", ":", "^x"])
def test_c27_nothing_is_found_for_nothing_and_operators_never_raise(tmp_path: Path, question: str) -> None:
    write(tmp_path, "memory/notes.md", SCRIPTS)
    shelf = shelf_of(tmp_path)
    assert ask(shelf, question) == []
    shelf.close()


@pytest.mark.skipif(not vectors.is_available(), reason="needs the extra vectors")
def test_c29_a_an_embedding_server_that_never_answers_costs_three_seconds_at_most(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "- The dentist is Dr. Quandt.")

    async def main() -> None:
        hung: list[asyncio.StreamWriter] = []

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hung.append(writer)
            await reader.read()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        profile = structs.replace(profile_of("openai", "embed"), base_url=f"http://127.0.0.1:{port}/v1")
        ledger = Ledger()

        async def desk(reference: str) -> Desk:
            endpoint = Endpoint(profile, "sk-test", Http("openai"))
            return Desk([endpoint], meter=ledger, rests=ledger, clock=FakeClock(), emit=lambda event: None)

        studio = Studio(PurposeSettings(embedding=EmbeddingPurpose("openai/embed")), desk)
        library = Library(
            shelf_of(tmp_path),
            today=lambda: TODAY,
            embedder=Vectors(studio, "openai/embed"),
            patience=Patience(question=0.2),
        )
        async with asyncio.timeout(3):
            found = await library.search("who is the dentist", Wanted())
        assert "Quandt" in found.results[0].text
        assert "did not answer" in found.degraded
        await library.close()
        await studio.close()
        server.close()
        for writer in hung:
            writer.close()
        await server.wait_closed()

    asyncio.run(main())


@pytest.mark.skipif(not vectors.is_available(), reason="needs the extra vectors")
@pytest.mark.parametrize("other", [("one", 5), ("another", 3), ("another", 9)])
def test_c29_b_vectors_of_a_changed_model_are_ignored_and_made_anew(tmp_path: Path, other: tuple[str, int]) -> None:
    write(tmp_path, "MEMORY.md", "- Our cat is called Miso.\n- The boat lies in Lisbon.\n")

    async def main() -> None:
        name, width = other
        await asked(tmp_path, Meanings("one", width=3), "any pets?", times=2)
        first, second = await asked(tmp_path, Meanings(name, width=width), "boat", times=2)
        for found in (first, second):
            assert "Lisbon" in found.results[0].text
            assert (found.degraded, found.notices) == ("", ())
        if name != "one":
            _, late = await asked(tmp_path, Meanings(name, width=width), "any pets?", times=2)
            assert "Miso" in late.results[0].text

    asyncio.run(main())


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.memory.shelves import shelf_of
shelf = shelf_of(Path(sys.argv[1]))
add = type(shelf._files).make
def make(files, fill, *, over):
    def half(index):
        fill(index)
        os.kill(os.getpid(), signal.SIGKILL)
    return add(files, half, over=over)
type(shelf._files).make = make
shelf.rebuild()
"""


def test_c29_c_who_is_killed_in_a_rebuild_leaves_the_index_that_answers(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path, f"memory/{number}.md", f"- plum number {number}\n")
    shelf = shelf_of(tmp_path)
    assert len(ask(shelf, "plum 7", most=1)) == 1
    shelf.close()
    before = {path.name for path in (tmp_path / "index").glob("*.db")}
    root = str(Path(__file__).resolve().parents[2])
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "index/building.db").exists()
    assert {path.name for path in (tmp_path / "index").glob("[0-9]*.db")} == before
    shelf = shelf_of(tmp_path)
    assert "plum number 7" in ask(shelf, "plum 7", most=1)[0].text
    assert shelf.notices == []
    shelf.rebuild()
    assert shelf.status().state == "ready"
    assert not (tmp_path / "index/building.db").exists()
    shelf.close()


def test_c29_d_the_first_query_of_a_fresh_index_finds_what_was_just_written(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "- The dentist is Dr. Quandt.")
    shelf = shelf_of(tmp_path)
    assert "Quandt" in ask(shelf, "dentist")[0].text
    assert shelf.status().state == "ready"
    shelf.close()
