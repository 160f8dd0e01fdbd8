"""What a turn costs in a process that runs already: CPU, write groups (one fsync each), bytes written."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from bench.fake import Fake, fake, folder
from bench.fake_server import USE_A_TOOL
from bench.home import assistant, say, session, settle
from bench.report import Figure, Report, median
from limpet.assistant.conversation import Conversation
from limpet.assistant.services import Services
from limpet.cli.deliver import deliver
from limpet.types.envelope import Address

CPU, GROUPS = 5.0, 4.0
PLAIN = "What is a limpet?"
KINDS = {"plain turn": PLAIN, "turn with one tool": USE_A_TOOL}


class Sample(NamedTuple):
    """The mean turn of those that ran together: ms of CPU, write groups, kB written; and turns a second."""

    cpu: float
    groups: float
    written: float
    rate: float


def measure(*, quick: bool) -> Report:
    """Blocks of turns in one process; medians of the blocks."""
    blocks = 2 if quick else 9
    figures: list[Figure] = []
    with fake() as server:
        for sessions in (1, 2) if quick else (1, 8, 64):
            samples = asyncio.run(_measure(server, sessions, blocks, 2 if quick else max(2, 24 // sessions)))
            for kind, found in samples.items():
                figures += _figures(f"{kind}, {sessions} at once", found, goals=(kind, sessions) == ("plain turn", 1))
    notes = [
        f"medians of {blocks} blocks; up to the committed reply; all threads of the process, not the fake's",
        f"delivery to the terminal costs {_delivery_groups(quick)} further write groups a part",
    ]
    return Report("A turn in a running process", figures, notes)


async def _measure(server: Fake, sessions: int, blocks: int, rounds: int) -> dict[str, list[Sample]]:
    with folder() as home:
        async with assistant(home, server) as services:
            talks = [session(services, f"s{number}") for number in range(sessions)]
            for text in KINDS.values():
                await _block(services, talks, text, rounds=2)
            if blocks > 2:
                settle()
            samples: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
            for _ in range(blocks):
                for kind, text in KINDS.items():
                    samples[kind].append(await _block(services, talks, text, rounds=rounds))
            return samples


async def _block(services: Services, talks: list[Conversation], text: str, *, rounds: int) -> Sample:
    """`rounds` turns of every session, the sessions at once."""

    async def one(talk: Conversation) -> None:
        for _ in range(rounds):
            await say(talk, text)

    groups, written, wall, cpu = services.store.stats.groups, _written(), time.perf_counter(), time.process_time()
    await asyncio.gather(*map(one, talks))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    turns = rounds * len(talks)
    return Sample(
        cpu=cpu * 1e3 / turns,
        groups=(services.store.stats.groups - groups) / turns,
        written=(_written() - written) / 1e3 / turns,
        rate=turns / wall,
    )


def _written() -> int:
    """Bytes this process has handed to write calls (files; sockets are not among them); 0 where nobody counts."""
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("wchar"))
    except OSError:
        return 0


def _figures(name: str, samples: list[Sample], *, goals: bool) -> list[Figure]:
    cpu, groups, written, rate = (median(values) for values in zip(*samples, strict=True))
    return [
        Figure(name, "CPU", cpu, "ms", CPU if goals else None),
        Figure(name, "write groups", groups, "", GROUPS if goals else None),
        Figure(name, "written", written, "kB"),
        Figure(name, "turns", rate, "/s"),
    ]


def _delivery_groups(quick: bool) -> int:
    async def count() -> int:
        with folder() as home, fake() as server:
            async with assistant(home, server) as services:
                talk = session(services, "delivery")
                await say(talk, PLAIN)
                before = services.store.stats.groups
                await deliver(services, Address(channel="cli", chat=talk.key), lambda row: None)
                return services.store.stats.groups - before

    return asyncio.run(count())
