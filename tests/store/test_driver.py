"""The database driver: group commit, savepoints, cancellation, several processes, faults of the disk."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from limpet.errors import StoreBusyError, StoreError, StoreNewerError
from limpet.store.driver import Store, StoreSettings
from limpet.store.lock import WriteLock
from limpet.store.migrations import MIGRATIONS
from limpet.store.sql import Connection


def put(connection: Connection, value: str) -> None:
    connection.execute("INSERT INTO blobs VALUES (?, 0, 0)", (value,))


def values(store: Store) -> list[str]:
    return [str(value) for (value,) in store.read(lambda c: c.execute("SELECT hash FROM blobs ORDER BY 1").fetchall())]


def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    async def write() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        await store.write(lambda c: put(c, "one"))
        await store.close()

    async def read() -> list[str]:
        store = Store.open(str(tmp_path / "a.db"), process="p2")
        found = values(store)
        await store.close()
        return found

    asyncio.run(write())
    assert asyncio.run(read()) == ["one"]


def test_concurrent_writes_share_a_group(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        await asyncio.gather(*(store.write(lambda c, i=i: put(c, f"v{i:03}")) for i in range(200)))
        assert len(values(store)) == 200
        assert store.stats.writes == 200
        assert store.stats.groups < 20
        await store.close()

    asyncio.run(main())


def test_a_write_that_raises_is_undone_alone(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")

        def bad(connection: Connection) -> None:
            put(connection, "bad")
            raise ValueError("no")

        results = await asyncio.gather(
            store.write(lambda c: put(c, "a")),
            store.write(bad),
            store.write(lambda c: put(c, "b")),
            return_exceptions=True,
        )
        assert isinstance(results[1], ValueError)
        assert values(store) == ["a", "b"]
        await store.close()

    asyncio.run(main())


def test_an_error_of_sql_is_a_store_error(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        await store.write(lambda c: put(c, "a"))
        with pytest.raises(StoreError):
            await store.write(lambda c: put(c, "a"))
        assert values(store) == ["a"]
        await store.close()

    asyncio.run(main())


def test_what_is_being_written_does_not_read_over_the_readers_connection(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        with pytest.raises(RuntimeError, match="another thread"):
            await store.write(lambda connection: values(store))
        await store.close()

    asyncio.run(main())


def test_a_cancelled_caller_learns_the_outcome_first(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        task = asyncio.create_task(store.write(lambda c: put(c, "a")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert values(store) == ["a"]
        await store.close()

    asyncio.run(main())


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    asyncio.run(_open_and_close(path))
    connection = apsw.Connection(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreNewerError, match="newer Limpet"):
        Store.open(path, process="p1")


def test_a_copy_is_made_before_a_migration(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    asyncio.run(_open_and_close(path))
    asyncio.run(_open_and_close(path, StoreSettings(migrations=(*MIGRATIONS, "CREATE TABLE later (a)"))))
    copy = apsw.Connection(f"{path}.v{len(MIGRATIONS)}.bak")
    assert copy.pragma("user_version") == len(MIGRATIONS)
    copy.close()


def test_the_error_of_a_held_lock_names_the_holder(tmp_path: Path) -> None:
    lock = WriteLock(str(tmp_path / "l"), holder="4711-abc")
    other = WriteLock(str(tmp_path / "l"), holder="me", patience=0.05)
    with lock.held(), pytest.raises(StoreBusyError, match="4711-abc"), other.held():
        pass
    with other.held():
        pass
    lock.close()
    other.close()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(StoreError, match="damaged"):
        Store.open(str(path), process="p1")
    assert path.read_bytes().startswith(b"not a database")


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from limpet.store.driver import Store\n"
        "async def main():\n"
        "    store = Store.open(sys.argv[1], process=sys.argv[2])\n"
        "    for i in range(50):\n"
        "        row = (f'{sys.argv[2]}-{i}',)\n"
        "        await store.write(lambda c: c.execute('INSERT INTO blobs VALUES (?, 0, 0)', row) and None)\n"
        "    await store.close()\n"
        "asyncio.run(main())\n"
    )
    path = str(tmp_path / "a.db")
    children = [subprocess.Popen([sys.executable, "-c", script, path, f"p{n}"], env=dict(os.environ)) for n in range(3)]
    assert [child.wait(timeout=60) for child in children] == [0, 0, 0]

    async def count() -> int:
        store = Store.open(path, process="p9")
        found = len(values(store))
        await store.close()
        return found

    assert asyncio.run(count()) == 150


async def _open_and_close(path: str, settings: StoreSettings | None = None) -> None:
    await Store.open(path, process="p1", settings=settings or StoreSettings()).close()


class FaultyFile(apsw.VFSFile):
    """A file whose next sync, or every write, fails while the switch of its VFS says so."""

    def __init__(self, vfs: FaultyVFS, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._vfs = vfs

    def xSync(self, flags: int) -> None:
        if self._vfs.failing == "sync":
            self._vfs.failing = ""
            raise apsw.IOError("disk")
        super().xSync(flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._vfs.failing == "write":
            raise apsw.IOError("disk")
        super().xWrite(data, offset)


class FaultyVFS(apsw.VFS):
    def __init__(self) -> None:
        self.failing = ""
        super().__init__("faulty", "")

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> FaultyFile:
        return FaultyFile(self, name, flags)


def test_an_io_error_at_commit_is_looked_up(tmp_path: Path) -> None:
    vfs = FaultyVFS()

    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1", settings=StoreSettings(vfs="faulty"))
        await store.write(lambda c: put(c, "a"))
        vfs.failing = "sync"
        try:
            await store.write(lambda c: put(c, "b"))
            claimed = ["a", "b"]
        except StoreError:
            claimed = ["a"]
        assert values(store) == claimed
        await store.write(lambda c: put(c, "c"))
        assert values(store) == [*claimed, "c"]
        await store.close()

    asyncio.run(main())
    vfs.unregister()


def test_a_failing_disk_is_a_clear_error_and_nothing_is_lost(tmp_path: Path) -> None:
    vfs = FaultyVFS()

    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1", settings=StoreSettings(vfs="faulty"))
        await store.write(lambda c: put(c, "a"))
        vfs.failing = "write"
        with pytest.raises(StoreError):
            await store.write(lambda c: put(c, "b"))
        vfs.failing = ""
        await store.write(lambda c: put(c, "c"))
        assert values(store) == ["a", "c"]
        await store.close()

    asyncio.run(main())
    vfs.unregister()


def test_scrubbing_empties_the_log_unless_a_reader_is_in_the_way(tmp_path: Path) -> None:
    async def main() -> None:
        store = Store.open(str(tmp_path / "a.db"), process="p1")
        await store.write(lambda c: put(c, "one"))
        reader = apsw.Connection(store.path, flags=apsw.SQLITE_OPEN_READONLY)
        reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM blobs").fetchall()
        await store.write(lambda c: put(c, "two"))
        assert not await store.scrub()
        reader.close()
        assert await store.scrub()
        assert os.stat(f"{store.path}-wal").st_size == 0
        assert values(store) == ["one", "two"]
        await store.close()

    asyncio.run(main())
