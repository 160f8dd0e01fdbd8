"""What it costs to be able to take a turn back: copies and scans of a workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from bench.fake import folder
from bench.report import Figure, Report, median
from limpet.testing.clock import FakeClock
from limpet.undo.copies import Copies
from limpet.undo.keeper import Keeper, TurnName
from limpet.undo.tree import SETTLED

FILES, SCAN = 2_000, 100.0
SIZE = 4_000


def measure(*, quick: bool) -> Report:
    """Medians over turns in one workspace; the first one has copied everything."""
    files, turns = (200, 2) if quick else (FILES, 9)
    with folder() as home:
        place = home / "workspace"
        _fill(place, files)
        if not quick:
            time.sleep(SETTLED / 1e9 + 0.1)
        keeper = Keeper(Copies(str(home / "undo" / "copies.db")), str(place), clock=FakeClock())
        samples = asyncio.run(_turns(keeper, place, turns))
        keeper.close()
    figures: list[Figure] = []
    for name, goal in (
        ("before the first command ever", None),
        ("before the first command of a turn", SCAN),
        ("at the end of a turn with commands", SCAN),
        ("a file tool", None),
    ):
        cpu, wall = (median(values) for values in zip(*samples[name], strict=True))
        figures += [Figure(name, "CPU", cpu, "ms", goal), Figure(name, "time", wall, "ms")]
    return Report(
        f"Undo in a workspace of {files:,} files", figures, [f"files of {SIZE:,} bytes; medians of {turns} turns"]
    )


def _fill(place: Path, files: int) -> None:
    for number in range(files):
        path = place / f"d{number % 40}" / f"e{number % 7}" / f"file{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(SIZE))


async def _turns(keeper: Keeper, place: Path, turns: int) -> dict[str, list[tuple[float, float]]]:
    samples: dict[str, list[tuple[float, float]]] = {}

    async def timed(name: str, work: Callable[[], Awaitable[object]]) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        await work()
        taken = ((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3)
        samples.setdefault(name, []).append(taken)

    target = str(place / "note.txt")
    for number in range(turns + 1):
        turn = TurnName(f"t{number}", "bench", "s1")
        await timed("a file tool", partial(keeper.before_file, turn, target))
        (place / "note.txt").write_text(f"{number}")
        first = "before the first command of a turn" if number else "before the first command ever"
        await timed(first, partial(keeper.before_command, turn))
        (place / "d1" / "made.txt").write_text(f"{number}")
        await timed("at the end of a turn with commands", partial(keeper.finish, turn))
        keeper.over(turn.turn)
    return samples
