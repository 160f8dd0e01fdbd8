"""What the attack suite (`tests/attack/`) tries, and how much of it gets through.

For each kind the attempts, those that succeeded (0 is the goal), and those that ended in a question to the owner.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.report import Figure, Report
from limpet.sandbox.run import Sandbox
from tests.attack import addresses, consent, escapes, hijacked, leaks, paths, wires
from tests.attack.played import Played, failures


def measure(*, quick: bool) -> Report:
    """Every attack once; with `quick` a hijacked model reads its order in two places instead of all."""
    logging.disable(logging.WARNING)
    sources = list(hijacked.SOURCES)[:2] if quick else list(hijacked.SOURCES)
    kinds: list[Callable[[Path], list[Played]]] = [
        paths.probe,
        lambda folder: paths.swaps(folder, rounds=20),
        lambda folder: asyncio.run(addresses.fetch(folder)),
        lambda folder: asyncio.run(addresses.through_the_proxy(folder)),
        lambda folder: asyncio.run(escapes.door(folder)),
        consent.consent,
        lambda folder: asyncio.run(wires.pretend_everywhere()),
    ]
    notes: list[str] = []
    if Sandbox().report.kind == "none":
        notes.append("no sandbox here: commands and a hijacked model were not tried")
    else:
        kinds += [lambda folder: asyncio.run(escapes.escape(folder)), lambda folder: asyncio.run(leaks.leak(folder))]
        kinds += [lambda folder, source=source: _hijack(folder, source) for source in sources]
    played: list[Played] = []
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="limpet-attack-") as folder:
            played += kind(Path(folder).resolve())
    return Report("the attack suite", figures(played), [*notes, *failures(played)])


def _hijack(folder: Path, source: str) -> list[Played]:
    return asyncio.run(hijacked.hijack(folder, source, hijacked.attacks()))


def figures(played: list[Played]) -> list[Figure]:
    """Three for each kind, and for all of them."""
    found: list[Figure] = []
    for kind in (*dict.fromkeys(one.kind for one in played), "all"):
        of_kind = [one for one in played if kind in (one.kind, "all")]
        found += [
            Figure(kind, "attempts", len(of_kind), ""),
            Figure(kind, "succeeded", sum(one.succeeded for one in of_kind), "", 0),
            Figure(kind, "asked", sum(one.asked for one in of_kind), ""),
        ]
    return found
