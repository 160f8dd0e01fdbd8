"""The schedule: what 10,000 jobs cost a gateway that has nothing to do, and how long it takes to see what is next."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.fake import ROOT, environment, fake, folder
from bench.report import Figure, Report, median
from limpet.schedule import ledger
from limpet.schedule.slots import after
from limpet.store import jobs, occurrences
from limpet.store.driver import Store
from limpet.store.sql import Connection
from limpet.types.envelope import Mandate
from limpet.types.job import Job, JobChange, Schedule

JOBS = 10_000
DAY = 86_400_000
MORE_CPU, QUERY = 0.1, 1.0
"""Goals: % of a core more than without jobs, ms."""


def measure(*, quick: bool) -> Report:
    """A real gateway without jobs, then with them; none of them is due meanwhile."""
    seconds, count = (2.0, 500) if quick else (60.0, JOBS)
    with fake() as server, folder() as home:
        home.mkdir(exist_ok=True)
        env = environment(home, server, LIMPET_GATEWAY__PORT="0", LIMPET_HEARTBEAT__MINUTES="0")
        subprocess.run(
            [sys.executable, "-m", "limpet", "gateway", "--once"], env=env, cwd=ROOT, check=True, capture_output=True
        )
        empty = _idle(env, seconds)
        times = asyncio.run(_fill(home / "limpet", count))
        full = _idle(env, seconds)
    name = f"{count:,} jobs"
    figures = [
        Figure("no jobs", "idle CPU", empty, "%"),
        Figure(name, "idle CPU", full, "%"),
        Figure(name, "more", max(0.0, full - empty), "%", MORE_CPU),
        *(Figure(name, what, value, "ms", goal) for what, value, goal in times),
    ]
    return Report(
        "The schedule", figures, [f"idle: `limpet gateway` without server and heartbeat, over {seconds:.0f} s"]
    )


async def _fill(home: Path, count: int) -> list[tuple[str, float, float | None]]:
    """Make the jobs, and say how long a look at them takes: what, ms, goal."""
    store = Store.open(str(home / "limpet.db"), process="bench")
    now = time.time_ns() // 1_000_000

    def make(connection: Connection) -> None:
        for number in range(count):
            jobs.apply(connection, _job(number, now))

    try:
        await store.write(make)
        rows = store.read(jobs.listed)
        return [
            ("next due", _timed(lambda: store.read(jobs.next_due)), QUERY),
            ("due now", _timed(lambda: store.read(lambda c: jobs.due(c, now=now, limit=200))), QUERY),
            ("next end", _timed(lambda: store.read(lambda c: occurrences.wake(c, waiting=True))), QUERY),
            ("check at the start", _timed(lambda: store.read(lambda c: ledger.derived(c, rows)), times=1), None),
        ]
    finally:
        await store.close()


def _job(number: int, now: int) -> JobChange:
    """Due in a day at the earliest."""
    name = f"j{number}"
    start = now + DAY + number * 1_000
    kinds = (
        Schedule("every", "1d", "UTC", every=DAY, anchor=start),
        Schedule("at", "later", "UTC", at=start),
        Schedule("cron", "yearly", "Europe/Lisbon", expression=f"{number % 60} {number % 24} 1 1 *"),
    )
    schedule = kinds[number % 3]
    made = Job(name, name, "main", schedule, "Look after it", f"cron:{name}", Mandate(name, name))
    return JobChange("put", name, now, made, after(schedule, now + DAY))


def _timed(work: Callable[[], object], *, times: int = 200) -> float:
    """Milliseconds, the middle of so many."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def _idle(env: dict[str, str], seconds: float) -> float:
    """Percent of a core that a gateway with nothing to do takes."""
    null = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", "limpet", "gateway"], env=env, cwd=ROOT, stdout=null, stderr=null)
    try:
        time.sleep(8.0 if seconds > 10 else 3.0)
        before = _cpu(process.pid)
        time.sleep(seconds)
        return (_cpu(process.pid) - before) / seconds * 100
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _cpu(process: int) -> float:
    """Seconds, of all threads."""
    threads = Path(f"/proc/{process}/task")
    return sum(int((threads / one / "schedstat").read_text().split()[0]) for one in os.listdir(threads)) / 1e9
