"""A process that forks, erases or deletes the main session and is killed at a step: `removal.py HOME ACT KILL_AT`.

Steps are before and after each commit; the process kills itself with SIGKILL at number KILL_AT.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from limpet.assistant import keeping
from limpet.assistant.keeping import Records
from limpet.session import erase
from limpet.store import entries, forks, sessions
from limpet.store.driver import StoreSettings
from limpet.testing.scripted import ScriptedModel
from tests.assistant.room import KEY, home
from tests.crash.child import Steps


async def main(folder: Path, act: str, kill_at: int) -> None:
    steps = Steps(kill_at)
    async with home(folder, ScriptedModel([]), store=StoreSettings(probe=steps)) as (services, _):
        store, owner = services.store, services.owner
        row = store.read(lambda connection: sessions.live(connection, KEY))
        assert row is not None
        match act:
            case "fork":
                log = store.read(lambda connection: entries.load(connection, row.id))
                await store.write(lambda c: forks.fork(c, row, log, key="agent:main:cli:copy", now=5))
            case "erase":
                await store.write(lambda c: erase.erase(c, row.id, owner=owner, now=5))
                await store.scrub()
            case _:
                records = Records(store, owner, str(folder / "blobs"), str(folder / "archive"))
                await keeping.delete(records, row, now=5, why="test")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
