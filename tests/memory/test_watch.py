"""Files that change are in the index before anybody asks, in a process that watches them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.memory import watch
from limpet.memory.library import Library
from tests.memory.shelves import TODAY, shelf_of, write

pytestmark = pytest.mark.skipif(not watch.is_available(), reason="needs the extra watch")


async def until(holds: Callable[[], bool], again: Callable[[], None]) -> None:
    """Watching begins at some moment: so `again` until it is seen."""
    async with asyncio.timeout(20):
        while not holds():
            again()
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/trips/rome.md", "memory/.hidden.md"])
def test_a_change_of_a_memory_file_is_seen_and_one_of_another_is_not(tmp_path: Path, path: str) -> None:
    write(tmp_path, "memory/trips/x.txt", "")
    seen: list[None] = []

    async def changed() -> None:
        seen.append(None)

    async def main() -> None:
        task = asyncio.create_task(watch.watch(str(tmp_path / "workspace"), changed, settled=50))
        number = iter(range(1_000))
        await until(lambda: bool(seen), lambda: write(tmp_path, path, f"- {next(number)}"))
        await asyncio.sleep(0.15)
        seen.clear()
        for other in ("USER.md", "memory/trips/x.txt", "memory/.MEMORY.md.1.tmp", "src/a.md"):
            write(tmp_path, other, "x")
        await asyncio.sleep(0.15)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert seen == []


def test_the_index_follows_the_files_and_closing_ends_it(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "- one\n")

    async def main() -> int:
        shelf = shelf_of(tmp_path)
        library = Library(shelf, today=lambda: TODAY)
        library.watch()
        library.watch()
        number = iter(range(1_000))
        count = [0]

        def again() -> None:
            write(tmp_path, "memory/b.md", f"- two {next(number)}\n")
            count[0] = len(list((tmp_path / "index").glob("*.db")))

        try:
            await until(lambda: count[0] > 0, again)
        finally:
            await library.close()
        return count[0]

    assert asyncio.run(main()) == 1
