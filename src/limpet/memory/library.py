"""The way to the index for everything that must not block: one thread works on it, and nobody waits for a vector long.

Words always answer. Where an embedder is slow or gone, what it would have added is missing, and that is told.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TypeVar

from msgspec import Struct

from limpet.errors import LimpetError
from limpet.memory import vectors, watch
from limpet.memory.index import Index
from limpet.memory.search import Result, Wanted, find
from limpet.memory.shelf import Shelf, Status
from limpet.types.ports import Embedder

log = logging.getLogger(__name__)
T = TypeVar("T")


class Patience(Struct, frozen=True):
    """Seconds: for the vector of a question, for those of a batch of passages, until a failed embedder is asked again,
    and for which recall takes the index for up to date (looking at every file before each turn costs more); and how
    many passages are a batch."""

    question: float = 2.5
    batch: float = 120.0
    rest: float = 60.0
    fresh: float = 30.0
    size: int = 32


class Found(Struct, frozen=True):
    """`degraded` says why vectors are missing where they should be there, `notices` what else the owner should know."""

    results: Sequence[Result]
    degraded: str = ""
    notices: tuple[str, ...] = ()


class Library:
    """Searches `shelf`; `today` is the owner's day. Without an `embedder` it goes by words alone; others may use it."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        today: Callable[[], date],
        embedder: Embedder | None = None,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
    ) -> None:
        self._shelf = shelf
        self._today = today
        self._embedder = embedder if vectors.is_available() else None
        self.embedder = embedder
        self._patience = patience
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="memory")
        self._filling: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._late: set[asyncio.Future[Found]] = set()
        self._rested_until = 0.0

    @property
    def has_notes(self) -> bool:
        """Whether there is a memory file besides those that stand in the prompt."""
        return self._shelf.has_notes()

    async def search(self, question: str, wanted: Wanted) -> Found:
        """What answers `question`, brought up to date before. Raises `StoreError`."""
        vector, degraded = await self._vector(question, self._patience.question)
        found = await self._run(lambda: self._find(question, wanted, vector))
        self._fill_up()
        return Found(found.results, degraded, found.notices)

    async def recall(self, question: str, wanted: Wanted, *, seconds: float) -> Found | None:
        """The same within `seconds`, with a vector only where that is there at once; None when it takes longer.

        What has begun goes on then, so that the next one is quick; what has not is left. Raises `StoreError`.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        vector = None
        if self._embedder is not None and self._embedder.is_ready:
            vector, _ = await self._vector(question, seconds / 2)
        begun = threading.Event()

        def look() -> Found:
            begun.set()
            return self._find(question, wanted, vector, within=self._patience.fresh)

        work = asyncio.ensure_future(self._run(look))
        self._late.add(work)
        work.add_done_callback(self._done)
        done, _ = await asyncio.wait({work}, timeout=max(0.0, end - loop.time()))
        if not done and not begun.is_set():  # else all that came while the index was busy would pile up
            work.cancel()
        return work.result() if done else None

    def watch(self) -> None:
        """From here on bring the index up to date whenever a file changes. Does nothing without the extra `watch`."""
        if watch.is_available() and self._watching is None:
            self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        """A boundary: when files cannot be watched any more, searches alone bring the index up to date."""

        async def changed() -> None:
            await self._run(lambda: self._shelf.run(lambda index: None))
            self._fill_up()

        try:
            await watch.watch(self._shelf.workspace, changed)
        except* (OSError, LimpetError) as errors:
            log.warning("memory files are not watched any more: %s", errors.exceptions)

    async def rebuild(self) -> Status:
        """Make the index anew, all vectors included. Raises `StoreError`."""
        await self._run(self._shelf.rebuild)
        if self._embedder is not None:
            await self._fill(self._embedder)
        return await self.status()

    async def status(self) -> Status:
        """Raises `StoreError`."""
        name = self._embedder.name if self._embedder else ""
        return await self._run(lambda: self._shelf.status(name))

    async def forget(self, group: str) -> int:
        """Take a file (path) or a session (id) out at once; how many passages. Raises `StoreError`."""
        return await self._run(lambda: self._shelf.forget(group))

    async def read(self, path: str) -> str:
        """A memory file. Raises `OSError`."""
        return await self._run(lambda: self._shelf.read(path))

    async def close(self) -> None:
        """Ends what runs, soon."""
        self._shelf.stop()
        for task in (self._watching, self._filling):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if self._late:
            await asyncio.wait(self._late)
        await self._run(self._shelf.close)
        self._thread.shutdown()
        if self.embedder is not None:
            await self.embedder.close()

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _done(self, work: asyncio.Future[Found]) -> None:
        self._late.discard(work)
        if not work.cancelled() and (error := work.exception()):
            log.warning("recall: %s", error)

    def _find(self, question: str, wanted: Wanted, vector: Sequence[float] | None, *, within: float = 0.0) -> Found:
        """On the thread. What has changed `within` the last seconds may be missing."""

        def work(index: Index) -> list[Result]:
            near: Mapping[int, float] = {}
            if vector is not None and self._shelf.has_vectors and self._embedder is not None:
                near = vectors.cosines(index, self._embedder.name, vector)
            return find(index, question, wanted, today=self._today(), cosines=near)

        results = self._shelf.run(work, within=within)
        notices, self._shelf.notices = tuple(dict.fromkeys(self._shelf.notices)), []
        return Found(results, notices=notices)

    async def _vector(self, question: str, seconds: float) -> tuple[Sequence[float] | None, str]:
        if self._embedder is None:
            return None, ""
        if asyncio.get_running_loop().time() < self._rested_until:
            return None, f"{self._embedder.name} did not answer lately"
        try:
            async with asyncio.timeout(seconds):
                (vector,) = await self._embedder.embed([question[: vectors.LONGEST]])
        except TimeoutError:
            return None, self._rests(f"{self._embedder.name} did not answer within {seconds:g} s")
        except (LimpetError, ValueError) as error:
            return None, self._rests(f"{self._embedder.name}: {error}")
        return vector, ""

    def _rests(self, reason: str) -> str:
        log.warning("vectors: %s", reason)
        self._rested_until = asyncio.get_running_loop().time() + self._patience.rest
        return reason

    def _fill_up(self) -> None:
        """Begin to make the vectors that are missing, beside everything else."""
        resting = asyncio.get_running_loop().time() < self._rested_until
        if self._embedder is not None and not resting and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._fill(self._embedder))

    async def _fill(self, embedder: Embedder) -> None:
        try:
            while missing := await self._run(lambda: self._missing(embedder.name)):
                async with asyncio.timeout(self._patience.batch):
                    made = await embedder.embed([text for _, text in missing])
                both = {hash: vector for (hash, _), vector in zip(missing, made, strict=True)}
                await self._run(lambda both=both: self._keep(embedder.name, both))
        except (LimpetError, ValueError, TimeoutError) as error:
            self._rests(f"{embedder.name}: {error or 'no answer'}")

    def _missing(self, model: str) -> list[tuple[str, str]]:
        size = self._patience.size
        return self._shelf.run(lambda index: vectors.missing(index, model, limit=size), fresh=False)

    def _keep(self, model: str, both: Mapping[str, Sequence[float]]) -> None:
        self._shelf.run(lambda index: vectors.keep(index, model, both), fresh=False)
