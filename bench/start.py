"""What it costs to start: CPU (user and system, children included), time and peak memory of whole commands."""

from __future__ import annotations

import compileall
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench.fake import ROOT, environment, fake, folder
from bench.report import Figure, Report, median

TURN_CPU, VERSION_CPU, TURN_MEMORY = 7.0, 1.5, 60.0
BASE = "import asyncio"


class Cost(NamedTuple):
    """CPU and wall in seconds, peak in megabytes (10^6 bytes)."""

    cpu: float
    wall: float
    peak: float


def measure(*, quick: bool) -> Report:
    """Each command `n` times, in turns, after one run that is not counted; medians."""
    compile_package()
    runs = 2 if quick else 15
    with folder() as place, fake() as server:
        commands = _commands()
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for attempt in range(runs + 1):
            for name, command in commands.items():
                home = place / (f"new-{attempt}" if name.endswith("new home") else "home")
                home.mkdir(exist_ok=True)
                cost = run(command, environment(home, server))
                if attempt:
                    costs[name].append(cost)
    notes = [f"medians of {runs} runs; compiled caches written and warm; CPU: user and system, with children"]
    return Report("Start of a process", _figures(costs), notes)


def _commands() -> dict[str, list[str]]:
    turn = ["agent", "-m", "What is a limpet?"]
    return {
        BASE: [sys.executable, "-c", "import asyncio"],
        "limpet --version": [*program(), "--version"],
        "limpet --help": [*program(), "--help"],
        "limpet agent -m": [*program(), *turn],
        "limpet agent -m, new home": [*program(), *turn],
    }


def program() -> list[str]:
    """The installed command beside this Python, else the module."""
    script = Path(sys.executable).with_name("limpet")
    return [str(script)] if script.exists() else [sys.executable, "-m", "limpet"]


def compile_package() -> None:
    """Write the compiled caches of Limpet; those of its libraries appear when a command first runs."""
    import limpet

    compileall.compile_dir(str(Path(limpet.__file__).parent), quiet=2)


def run(command: list[str], environ: dict[str, str]) -> Cost:
    """Run a command to its end, its output unseen. Raises `RuntimeError` when it fails."""
    launch = [sys.executable, "-I", "-S", str(ROOT / "bench" / "launch.py")]
    done = subprocess.run([*launch, *command], env=environ, capture_output=True, text=True, check=True)
    code, cpu, wall, peak = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"{' '.join(command)} ended with {code}")
    return Cost(float(cpu), float(wall), int(peak) / 1e6)


def _figures(costs: dict[str, list[Cost]]) -> list[Figure]:
    base = median([cost.cpu for cost in costs[BASE]])
    figures: list[Figure] = []
    for name, found in costs.items():
        turn = name.startswith("limpet agent")
        goal = TURN_CPU if turn else VERSION_CPU if name.endswith("--version") else None
        cpu = median([cost.cpu for cost in found])
        figures += [
            Figure(name, "CPU", cpu * 1e3, "ms"),
            Figure(name, "of import asyncio", cpu / base, "x", goal),
            Figure(name, "wall", median([cost.wall for cost in found]) * 1e3, "ms"),
            Figure(name, "peak", median([cost.peak for cost in found]), "MB", TURN_MEMORY if turn else None),
        ]
    return figures
