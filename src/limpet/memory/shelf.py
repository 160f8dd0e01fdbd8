"""The index of one agent as it lies on disk: opened, brought up to date, made anew when it is damaged.

Everything here blocks, and belongs to one thread at a time; `library` is the way in for the others.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from typing import Literal, TypeVar

import apsw
from msgspec import Struct, convert

from limpet.errors import StoreError
from limpet.memory import vectors
from limpet.memory.daily import sweep as sweep_drafts
from limpet.memory.files import is_memory_file
from limpet.memory.generations import Generations
from limpet.memory.index import Index
from limpet.memory.scope import OWNERS
from limpet.memory.sources import Talks, read_file
from limpet.memory.sync import forget, sweep, sync
from limpet.memory.words import terms

log = logging.getLogger(__name__)
T = TypeVar("T")
DAMAGED = "The index of the memory was damaged; it has been made anew. Notes and conversations are not touched."
IN_MEMORY = "The index of the memory cannot be written ({}): it is made anew in each process, which takes longer."
_TEST, _TRIED = 200, 20
"""Characters of the newest passage with words that have to find it, and among how many hits."""
_ANY_DAY = date(2000, 1, 1)

State = Literal["ready", "empty", "failed"]


class Status(Struct, frozen=True):
    """`state` is `ready` only when a passage is found by its own words. `size` is bytes, `vectors` those of `model`."""

    state: State
    files: int
    sessions: int
    passages: int
    withheld: int
    size: int
    model: str = ""
    vectors: int = 0


class Shelf:
    """The index in `folder` of the memory in `workspace` and of `talks`."""

    def __init__(self, folder: str, workspace: str, talks: Talks) -> None:
        self._files = Generations(folder)
        self.workspace = workspace
        self._talks = talks
        self._index: Index | None = None
        self._number = -1
        self._stopped = False
        self._synced = float("-inf")
        self.has_vectors = False
        self.notices: list[str] = []

    def stop(self) -> None:
        """From any thread: end what takes long, soon."""
        self._stopped = True

    def close(self) -> None:
        self._drop()
        self._talks.close()

    def run(self, work: Callable[[Index], T], *, fresh: bool = True, within: float = 0.0) -> T:
        """What `work` makes of the index, brought up to date before if it shall be `fresh`, unless that was done
        `within` so many seconds.

        A damaged index is made anew, once. Raises `StoreError` when even that does not help.
        """
        for attempt in range(3):
            try:
                index = self._current()
                if fresh and time.monotonic() >= self._synced + within:
                    self._sync(index)
                    self._synced = time.monotonic()
                return work(index)
            except (apsw.Error, OSError) as error:
                log.warning("memory index: %s: %s", type(error).__name__, error)
                if attempt == 2:
                    raise StoreError(f"The index of the memory failed: {error}.") from error
                self._recover(error, attempt)
        raise AssertionError

    def has_notes(self) -> bool:
        """Whether there is anything in the folder of the memory."""
        try:
            with os.scandir(os.path.join(self.workspace, OWNERS.folder)) as listing:
                return any(True for _ in listing)
        except OSError:
            return False

    def rebuild(self) -> None:
        """Make the index anew beside the old one, which answers until the new one has passed its test.

        Raises `StoreError` when it cannot be made; then the old one stays.
        """
        try:
            known = self._vectors()
            self._files.make(lambda index: self._fill(index, known), over=self._files.newest())
        except (apsw.Error, OSError) as error:
            raise StoreError(f"The index of the memory could not be made anew: {error}.") from error

    def forget(self, group: str) -> int:
        """Take a file (path) or a session (id) out at once; how many passages. What is still there comes back."""

        def work(index: Index) -> int:
            count = forget(index, group)
            sweep(index)
            return count

        return self.run(work, fresh=False)

    def read(self, path: str) -> str:
        """A memory file. Raises `OSError`, also for what is none."""
        if not is_memory_file(path):
            raise FileNotFoundError(path)
        return read_file(self.workspace, path).decode("utf-8", "replace")

    def status(self, model: str = "") -> Status:
        """As it is now. Raises `StoreError`."""
        return self.run(lambda index: self._status(index, model))

    def _status(self, index: Index, model: str) -> Status:
        row = index.connection.execute(
            "SELECT (SELECT COUNT(*) FROM files), (SELECT COUNT(*) FROM talks), COUNT(*), COALESCE(SUM(withheld), 0)"
            " FROM passages"
        ).fetchone()
        files, talks, passages, withheld = convert(row, tuple[int, int, int, int])
        size = 0
        with suppress(OSError):
            size = os.path.getsize(self._files.path(self._number))
        return Status(tested(index), files, talks, passages, withheld, size, model, vectors.count(index, model))

    def _current(self) -> Index:
        """The newest file, which another process may have made."""
        if self._index is not None and (self._number == 0 or self._number == self._files.newest()):
            return self._index
        self._drop()
        index, self._number = self._files.open()
        return self._take(index)

    def _take(self, index: Index) -> Index:
        self._index = index
        self.has_vectors = vectors.is_available() and vectors.load(index)
        return index

    def _sync(self, index: Index) -> None:
        if self._synced == float("-inf"):
            for folder in ("", OWNERS.folder, OWNERS.pending):
                sweep_drafts(self.workspace, folder)
        try:
            sync(index, self.workspace, self._talks, stopped=lambda: self._stopped)
        except apsw.BusyError:
            self.notices.append("Another process writes to the index of the memory: the newest may be missing.")
        except StoreError as error:
            self.notices.append(f"Earlier conversations are missing: {error}")

    def _recover(self, error: Exception, attempt: int) -> None:
        """After a failure: opened again, or a new file; where none can be written, an index in memory."""
        number = self._number
        self._drop()
        if isinstance(error, apsw.BusyError):
            return
        damaged = isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.SQLError | apsw.ConstraintError)
        if attempt == 0 and damaged:
            with suppress(apsw.Error, OSError):
                self._files.make(lambda index: None, over=max(number, self._files.newest()))
                self.notices.append(DAMAGED)
                return
        if attempt == 0:
            return  # another process may just have made it anew: opened again, it is well
        self._number = 0
        self._take(Index())
        self.notices.append(IN_MEMORY.format(error))

    def _fill(self, index: Index, known: list[tuple[str, str, bytes]]) -> None:
        with index.writing() as connection:
            for row in known:
                connection.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", row)
        with suppress(StoreError):
            sync(index, self.workspace, self._talks)
        index.compact()
        if tested(index) == "failed":
            raise apsw.CorruptError("a passage was not found by its own words")

    def _vectors(self) -> list[tuple[str, str, bytes]]:
        """Those that need not be made again."""
        try:
            rows = self._current().connection.execute("SELECT hash, model, data FROM vectors").fetchall()
            return convert(rows, list[tuple[str, str, bytes]])
        except (apsw.Error, OSError):
            return []

    def _drop(self) -> None:
        if self._index is not None:
            with suppress(apsw.Error):
                self._index.close()
        self._index, self._number, self._synced = None, -1, float("-inf")


def tested(index: Index) -> State:
    """Whether the newest passage is found by its own words."""
    newest = index.connection.execute("SELECT text FROM passages ORDER BY id DESC LIMIT ?", (_TRIED,))
    texts = [text for (text,) in convert(newest.fetchall(), list[tuple[str]])]
    if not texts:
        return "empty"
    text = next((text for text in texts if terms(text[:_TEST])), "")
    hits = index.search(text[:_TEST], today=_ANY_DAY)
    found = index.passages(hit.id for hit in hits[:_TRIED]).values()
    return "ready" if not text or any(one.text == text for one in found) else "failed"
