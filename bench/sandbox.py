"""What the sandbox adds to a command: the same command on the host, in the sandbox, and behind the egress proxy."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

from bench.fake import folder
from bench.report import Figure, Report, median
from limpet.egress.hosts import Host
from limpet.egress.proxy import Egress
from limpet.net.guard import Guard
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.network import NO_NETWORK, Network
from limpet.sandbox.run import Job, Place, Sandbox

ADDED = 40.0
BARE = "sh, nothing around it"


def measure(*, quick: bool) -> Report:
    """Medians over `true`, the ways in turns; the first round is not counted."""
    rounds = 3 if quick else 40
    with folder() as place:
        (place / "workspace").mkdir()
        times = asyncio.run(_times(place, rounds))
    bare = median(times[BARE])
    figures: list[Figure] = []
    for name, found in times.items():
        figures.append(Figure(name, "time", median(found), "ms"))
        if name != BARE:
            goal = ADDED if name.startswith("sandbox") else None
            figures.append(Figure(name, "added", median(found) - bare, "ms", goal))
    return Report("What the sandbox adds to a command", figures, [f"the command `true`; medians of {rounds} runs"])


async def _times(place: Path, rounds: int) -> dict[str, list[float]]:
    workspace = str((place / "workspace").resolve())
    times: dict[str, list[float]] = {}
    async with Sandbox() as sandbox, Egress((Host("example.org"),), (), guard=Guard(), folder=place) as egress:
        ways: dict[str, tuple[Place, Network]] = {"host, under the init": ("host", NO_NETWORK)}
        if sandbox.report.kind != "none":
            ways["sandbox"] = ("sandbox", NO_NETWORK)
            ways["sandbox with an allow-list"] = ("sandbox", egress.network)
        for number in range(rounds + 1):
            began = time.perf_counter()
            subprocess.run(["/bin/sh", "-c", "true"], check=True)
            taken = {BARE: time.perf_counter() - began}
            for name, (where, network) in ways.items():
                job = Job("true", workspace, workspace, {"PATH": search_path()}, place=where, network=network)
                began = time.perf_counter()
                await sandbox.run(job, lambda _: None)
                taken[name] = time.perf_counter() - began
            if number:
                for name, seconds in taken.items():
                    times.setdefault(name, []).append(seconds * 1e3)
    return times
