"""What it costs to compute the messages of a long session: all of it from the database, and one more entry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.fake import folder
from bench.report import Figure, Report, median
from limpet.session import keys
from limpet.session.log import Log
from limpet.store import entries, sessions
from limpet.store.driver import Store
from limpet.store.owner import Owner
from limpet.store.sql import Connection
from limpet.types.content import Text, ToolCall
from limpet.types.entry import AssistantEntry, Entry, Payload, Prune, ToolResultEntry, UserEntry
from limpet.types.message import AssistantMessage, Message, Producer, UserMessage
from limpet.types.tool import text_result

LENGTHS = (20, 200, 2_000)
COLD, WARM = 20.0, 1.0
PRUNE_EVERY = 100
"""Entries between two prunes, each of which changes messages that were there before."""
ME = Producer("bench", "openai_chat", "bench-1")
T = TypeVar("T")


def measure(*, quick: bool) -> Report:
    """Sessions with a tool call in every turn, plain and with prunes; medians."""
    rounds = 3 if quick else 25
    figures: list[Figure] = []
    with folder() as home:
        for pruned in (False, True):
            for length in LENGTHS:
                name = f"{length:,} entries{', pruned' if pruned else ''}"
                place = home / f"{length}-{pruned}"
                figures += asyncio.run(_measure(place, name, length, pruned=pruned, rounds=rounds))
    notes = [
        f"medians of {rounds}, CPU; cold: entries in memory are projected; load: they are read and decoded before",
        "warm: one more entry, and the messages again; folds: entries looked at for it",
    ]
    return Report("The messages of a session", figures, notes)


async def _measure(home: Path, name: str, length: int, *, pruned: bool, rounds: int) -> list[Figure]:
    home.mkdir()
    owner = Owner(str(home / "run"))
    store = Store.open(str(home / "limpet.db"), process=owner.name)
    try:
        session = await store.write(lambda connection: _fill(connection, owner, length, pruned=pruned))
        load: list[float] = []
        cold: list[float] = []
        warm: list[float] = []
        folds = 0
        for _ in range(rounds):
            found, read = _timed(lambda: store.read(lambda connection: entries.load(connection, session)))
            log, projected = _timed(lambda found=found: _projected(found))
            before = log.folds
            _, more = _timed(lambda log=log: _one_more(log))
            folds = log.folds - before
            load.append(read + projected)
            cold.append(projected)
            warm.append(more)
    finally:
        await store.close()
        owner.close()
    return [
        Figure(name, "cold", median(cold), "ms", COLD if length == LENGTHS[-1] else None),
        Figure(name, "warm", median(warm), "ms", WARM if length == LENGTHS[-1] else None),
        Figure(name, "folds", folds, "", 1),
        Figure(name, "load", median(load), "ms"),
    ]


def _fill(connection: Connection, owner: Owner, length: int, *, pruned: bool) -> str:
    """Write a session of `length` entries; its id."""
    live = sessions.open_live(connection, keys.main("bench"), agent="bench", now=1)
    lease = sessions.claim(connection, live.id, owner=owner)

    def add(payload: Payload) -> str:
        return entries.append(connection, lease, payload, turn="t", now=1).id

    fresh: list[str] = []
    for number in range(length // 4):
        question = Text(f"{number}: what is there to know about limpets? " * 4)
        add(UserEntry(UserMessage((question,), runtime="<runtime>")))
        call = ToolCall(id=f"call_{number}", name="read_file", arguments='{"path": "limpets.md"}')
        answer = add(AssistantEntry(AssistantMessage((Text("Let me see."), call), producer=ME)))
        fresh.append(add(ToolResultEntry(answer, 0, "read_file", text_result("They hold on to their rock. " * 70))))
        if pruned and number % (PRUNE_EVERY // 4) == 0:
            add(Prune(tuple(fresh), how="soft"))
            fresh.clear()
        else:
            add(AssistantEntry(AssistantMessage((Text("They hold on. " * 20),), producer=ME)))
    sessions.release(connection, lease)
    return live.id


def _projected(found: list[Entry]) -> Log:
    log = Log(found)
    log.messages()
    return log


def _one_more(log: Log) -> tuple[Message, ...]:
    last = log.entries[-1]
    more = UserEntry(UserMessage((Text("And what else?"),)))
    log.extend([Entry(last.session, last.seq + 1, "more", log.leaf, last.at, "t", more)])
    return log.messages()


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` gives, and the milliseconds of CPU it took."""
    began = time.process_time()
    found = work()
    return found, (time.process_time() - began) * 1e3
