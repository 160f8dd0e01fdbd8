"""The database: one writer thread with group commit, and readers apart.

`write` hands a function to the writer thread. Functions that arrive while a group is being synced form the next
group: one transaction, each function under a SAVEPOINT of its own, one fsync for all. A function that raises is
rolled back alone. `write` returns after the fsync, also when the caller is cancelled meanwhile: it learns the outcome
first. Reads run on a second, read-only connection of the caller's thread and never hold a cursor over an await.
"""

# apsw's stubs name a type that Python 3.11 has not:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import apsw

from limpet.errors import CommitUnknownError, StoreError, StoreFullError, StoreNewerError
from limpet.store.lock import WriteLock
from limpet.store.migrations import MIGRATIONS
from limpet.store.sql import Connection

T = TypeVar("T")
Probe = Callable[[str], None]
"""Told of each step (`before commit`, `after commit`), so that tests can end the process right there."""

GROUP_LIMIT = 256
BUSY_PATIENCE = 10_000
"""Milliseconds to wait for others at one statement."""
SCRUB_PATIENCE = 300
"""… for readers that are in the way of emptying the write-ahead log, while everybody else's writes wait."""
CHECKPOINT_PAGES = 1000
"""Pages of 4 KiB in the WAL after which the writer thread copies them into the database."""


def _no_probe(step: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`durability` full: synced at each commit; normal: a power cut may lose the last moments, a crash nothing.

    `vfs` names an apsw VFS to open the files with.
    """

    durability: Literal["full", "normal"] = "full"
    vfs: str | None = None
    migrations: tuple[str, ...] = MIGRATIONS
    probe: Probe = _no_probe
    patience: float = 10.0


@dataclass(slots=True)
class StoreStats:
    """Write groups (= fsyncs) and functions committed by this process."""

    groups: int = 0
    writes: int = 0


class _Job(Generic[T]):
    __slots__ = ("_error", "_future", "_loop", "_result", "work")

    def __init__(self, work: Callable[[Connection], T], future: asyncio.Future[T]) -> None:
        self.work = work
        self._future = future
        self._loop = future.get_loop()
        self._result: T | None = None
        self._error: BaseException | None = None

    def run(self, connection: apsw.Connection) -> None:
        """Do the work under a savepoint; what it raises is kept for the caller and undoes this job alone."""
        connection.execute("SAVEPOINT job")
        try:
            self._result = self.work(connection)
        except apsw.Error as error:
            self._error = explain(error)
        except Exception as error:
            self._error = error
        if not connection.in_transaction:
            raise StoreError("The transaction was rolled back by SQLite.") from self._error
        if self._error is not None:
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")

    def settle(self, error: BaseException | None = None) -> None:
        """Tell the caller how it ended: `error` when the group as a whole failed."""
        self._loop.call_soon_threadsafe(self._deliver, error or self._error)

    def _deliver(self, error: BaseException | None) -> None:
        if error is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(self._result)  # pyright: ignore[reportArgumentType] (T may itself be None)


class Store:
    """One database file, opened by `Store.open` and ended by `close`."""

    def __init__(self, path: str, process: str, settings: StoreSettings) -> None:
        self.path = path
        self.stats = StoreStats()
        self._process = process
        self._settings = settings
        self._lock = WriteLock(f"{path}.lock", holder=process, patience=settings.patience)
        self._jobs: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        self._opener = threading.get_ident()
        self._thread = threading.Thread(target=self._work, name="limpet-writer", daemon=True)
        self._group = 0
        self._connection = _connect(path, settings)
        self._broken = False
        self._scrub = False
        self.reader: apsw.Connection

    @classmethod
    def open(cls, path: str, *, process: str, settings: StoreSettings = StoreSettings()) -> Store:
        """Open or create the database at `path`; `process` names us to other processes.

        Raises `StoreError` (unreadable, damaged), `StoreNewerError`, `StoreBusyError`, `StoreFullError`.
        """
        try:
            store = cls(path, process, settings)
            with store._lock.held():
                _prepare(store._connection, process, settings)
                _migrate(store._connection, path, settings.migrations)
            store.reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=settings.vfs)
            store.reader.set_busy_timeout(BUSY_PATIENCE)
            store.reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except apsw.Error as error:
            raise explain(error, path) from error
        except OSError as error:
            raise StoreError(f"Cannot open the database {path}: {error.strerror}.") from error
        store._thread.start()
        return store

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in the next write group; returns what it returned, after the fsync.

        Raises what `work` raised (nothing of it was written), or `StoreError` for the group.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Job(work, future))  # pyright: ignore[reportArgumentType] (the queue holds jobs of any result)
        cancelled = False
        while not future.done():
            try:
                await asyncio.wait((future,))
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            future.exception()
            raise asyncio.CancelledError
        return future.result()

    async def scrub(self) -> bool:
        """Empty the write-ahead log into the database, which forgets what was overwritten. False: a reader is in the
        way, and old pages stay in the log until the next time.
        """
        await self.write(self._ask_for_scrub)
        return _wal_pages(self.path) == 0

    def _ask_for_scrub(self, connection: Connection) -> None:
        self._scrub = True

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work` on the read-only connection, in the caller's thread, which is the one that opened the store:
        what is to be written reads over the connection it is given.
        """
        if threading.get_ident() != self._opener:
            raise RuntimeError("the database is read from another thread than the one that opened it")
        try:
            return work(self.reader)
        except apsw.Error as error:
            raise explain(error, self.path) from error

    def data_version(self) -> int:
        """A number that changes when any other connection has committed."""
        return int(self.reader.pragma("data_version"))  # pyright: ignore[reportArgumentType]

    async def close(self) -> None:
        """Finish what was handed in, then close the files."""
        self._jobs.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self.reader.close()
        self._lock.close()

    # The writer thread.

    def _work(self) -> None:
        while True:
            first = self._jobs.get()
            if first is None:
                break
            group, last = [first], False
            while len(group) < GROUP_LIMIT and not self._jobs.empty():
                job = self._jobs.get()
                if job is None:
                    last = True
                    break
                group.append(job)
            self._run(group)
            if last:
                break
        self._finish()

    def _run(self, group: list[_Job[object]]) -> None:
        error: BaseException | None = None
        try:
            if self._broken:
                self._reopen()
            with self._lock.held():
                self._commit(group)
                self._checkpoint()
        except StoreError as failure:
            error = failure
        except apsw.Error as failure:
            error = explain(failure, self.path)
        for job in group:
            job.settle(error)

    def _commit(self, group: list[_Job[object]]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        self._group += 1
        try:
            for job in group:
                job.run(connection)
            connection.execute(
                "INSERT INTO groups VALUES (?1, ?2) ON CONFLICT DO UPDATE SET id = ?2", (self._process, self._group)
            )
            self._settings.probe("before commit")
            connection.execute("COMMIT")
        except (apsw.IOError, apsw.CorruptError) as error:
            self._look_up(error)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.stats.groups += 1
        self.stats.writes += len(group)
        self._settings.probe("after commit")

    def _look_up(self, error: apsw.Error) -> None:
        """After an I/O error at COMMIT nobody knows: open the file anew and see whether the group is there."""
        self._broken = True
        try:
            self._reopen()
            found = self._connection.execute("SELECT id FROM groups WHERE process = ?", (self._process,)).get
        except apsw.Error as again:
            raise CommitUnknownError(
                f"The disk failed while {self.path} was written ({error}), and it could not be read back ({again}).",
                hint="Check the disk. Limpet looks again at its next start; nothing is repeated until then.",
            ) from error
        if found != self._group:
            raise explain(error, self.path) from error

    def _reopen(self) -> None:
        self._connection.close(True)
        self._connection = _connect(self.path, self._settings)
        _prepare(self._connection, self._process, self._settings)
        self._broken = False

    def _checkpoint(self) -> None:
        if self._scrub:
            self._scrub = False
            self._connection.set_busy_timeout(SCRUB_PATIENCE)
            with contextlib.suppress(apsw.BusyError):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._connection.set_busy_timeout(BUSY_PATIENCE)
        elif self.stats.groups % 64 == 0 and _wal_pages(self.path) > CHECKPOINT_PAGES:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _finish(self) -> None:
        try:
            with self._lock.held():
                if _wal_pages(self.path) > CHECKPOINT_PAGES // 4:
                    self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._connection.close()
        except (StoreError, apsw.Error):  # the WAL keeps everything; the next start goes on from it
            self._connection.close(True)


def _connect(path: str, settings: StoreSettings) -> apsw.Connection:
    connection = apsw.Connection(path, vfs=settings.vfs)
    connection.set_busy_timeout(BUSY_PATIENCE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    return connection


def _prepare(connection: apsw.Connection, process: str, settings: StoreSettings) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA synchronous = {settings.durability}")
    connection.execute("PRAGMA secure_delete = ON")  # what is erased is overwritten
    connection.execute("CREATE TEMP TABLE writer AS SELECT ? AS process", (process,))  # whose chain `audit` adds to


def _migrate(connection: apsw.Connection, path: str, migrations: tuple[str, ...]) -> None:
    version = int(connection.execute("PRAGMA user_version").get)
    check_version(version, path, known=len(migrations))
    if version == len(migrations):
        return
    if version:
        copy = f"{path}.v{version}.bak"
        if not os.path.exists(copy):
            connection.execute("VACUUM INTO ?", (copy,))
    with connection:
        for script in migrations[version:]:
            connection.execute(script)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")


def check_version(version: int, path: str, *, known: int = len(MIGRATIONS)) -> None:
    """Raises `StoreNewerError` for a schema that this program does not know."""
    if version > known:
        raise StoreNewerError(
            f"{path} was written by a newer Limpet (schema {version}, this one knows {known}).",
            hint="Update Limpet; nothing was changed.",
        )


def _wal_pages(path: str) -> int:
    try:
        return os.stat(f"{path}-wal").st_size // 4096
    except FileNotFoundError:
        return 0


def explain(error: apsw.Error, path: str = "the database") -> StoreError:
    """What an error of SQLite means for the user."""
    if isinstance(error, apsw.FullError):
        return StoreFullError(
            f"No space left to write {path}; nothing was lost.", hint="Free some space, then say it again."
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreError(
            f"{path} is damaged ({error}).", hint="Run `limpet doctor`; copies from before upgrades lie beside it."
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError):
        return StoreError(f"{path} cannot be written ({error}).", hint="Check that its folder is writable for you.")
    return StoreError(f"The database failed: {error}. Nothing was written.")
