"""Searching without blocking: words always answer, whatever the embedder does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from limpet.memory import vectors
from limpet.memory.library import Found, Library, Patience
from limpet.memory.search import Wanted
from limpet.types.ports import Embedder
from tests.memory.shelves import TODAY, shelf_of, write

PATIENT = Patience()
NOTES = "- Our cat is called Miso.\n- The boat lies in Lisbon.\n"
needs_vectors = pytest.mark.skipif(not vectors.is_available(), reason="needs the extra vectors")


class Meanings:
    """An embedder that knows what is an animal, and what is a place; `width` is that of its vectors."""

    is_ready = True

    def __init__(self, name: str = "meanings", *, width: int = 3, hangs: bool = False) -> None:
        self.name = name
        self.width = width
        self.hangs = hangs
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked += 1
        if self.hangs:
            await asyncio.sleep(600)
        words = (("cat", "pet"), ("boat", "harbour"))
        found = [[float(any(word in text for word in group)) for group in words] for text in texts]
        return [[*vector, 0.01, *[0.0] * (self.width - 3)] for vector in found]

    async def close(self) -> None:
        pass


async def asked(
    folder: Path, embedder: Embedder | None, question: str, *, times: int = 1, patience: Patience = PATIENT
) -> list[Found]:
    library = Library(shelf_of(folder), today=lambda: TODAY, embedder=embedder, patience=patience)
    found: list[Found] = []
    try:
        for _ in range(times):
            found.append(await library.search(question, Wanted()))
            for _ in range(100):
                status = await library.status()
                if embedder is None or status.vectors >= status.passages or getattr(embedder, "hangs", False):
                    break
                await asyncio.sleep(0.01)
        return found
    finally:
        await library.close()


def test_words_answer_without_an_embedder(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    (found,) = asyncio.run(asked(tmp_path, None, "Where is the boat?"))
    assert "Lisbon" in found.results[0].text
    assert (found.degraded, found.notices) == ("", ())


@needs_vectors
def test_vectors_find_what_is_said_in_other_words(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    first, second = asyncio.run(asked(tmp_path, Meanings(), "any pets?", times=2))
    assert not first.results
    assert "Miso" in second.results[0].text


@needs_vectors
def test_vectors_are_made_once(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    asyncio.run(asked(tmp_path, Meanings(), "pets"))
    embedder = Meanings()
    asyncio.run(asked(tmp_path, embedder, "pets"))
    assert embedder.asked == 1  # the question


@needs_vectors
def test_vectors_of_another_length_or_model_are_ignored(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    asyncio.run(asked(tmp_path, Meanings(), "pets"))
    for other in (Meanings(width=5), Meanings("new", width=7)):
        (found,) = asyncio.run(asked(tmp_path, other, "boat"))
        assert "Lisbon" in found.results[0].text
        assert found.degraded == ""


@needs_vectors
def test_a_silent_embedder_costs_its_deadline_once_and_is_told(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    embedder = Meanings(hangs=True)
    patience = Patience(question=0.05, batch=0.05)
    began = time.monotonic()
    first, second = asyncio.run(asked(tmp_path, embedder, "boat", times=2, patience=patience))
    assert time.monotonic() - began < 20
    assert "did not answer" in first.degraded
    assert "did not answer" in second.degraded
    assert "Lisbon" in second.results[0].text
    assert embedder.asked == 1


def test_recall_gives_up_in_time_and_the_work_goes_on(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)

    async def main() -> None:
        library = Library(shelf_of(tmp_path), today=lambda: TODAY)
        assert await library.recall("boat", Wanted(), seconds=0.0) is None
        found = await library.recall("boat", Wanted(), seconds=30.0)
        assert found is not None
        assert "Lisbon" in found.results[0].text
        await library.close()

    asyncio.run(main())


def test_recalls_that_come_while_the_index_is_busy_do_not_pile_up(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    released = threading.Event()

    async def main() -> None:
        library = Library(shelf_of(tmp_path), today=lambda: (released.wait(30), TODAY)[1])
        for _ in range(20):
            assert await library.recall("boat", Wanted(), seconds=0.01) is None
        await asyncio.sleep(0)
        waiting = [task for task in asyncio.all_tasks() if "Library._run" in repr(task)]
        assert len(waiting) == 1  # the one that has begun
        released.set()
        await library.close()

    asyncio.run(main())


def test_a_file_that_is_no_memory_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", NOTES)
    write(tmp_path, "SOUL.md", "x")

    async def main() -> None:
        library = Library(shelf_of(tmp_path), today=lambda: TODAY)
        assert await library.read("MEMORY.md") == NOTES
        for path in ("SOUL.md", "../x", "/etc/passwd", "memory/../SOUL.md", "memory"):
            with pytest.raises(OSError):  # noqa: PT011 (any)
                await library.read(path)
        await library.close()

    asyncio.run(main())
