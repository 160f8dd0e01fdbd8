"""What the index of the memory costs: building it, a search by words, looking whether anything changed, memory.

Made-up notes, of which every fifth is Chinese: files of ten paragraphs of about 300 tokens, a paragraph a passage. Each
size is measured in a process of its own. LIMPET_BENCH_LARGE=1 adds 100,000 passages, which takes minutes.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.report import Figure, Report, median
from limpet.memory.search import Wanted, find
from limpet.memory.shelf import Shelf
from limpet.memory.sources import Talks

QUICK, SIZES, LARGE = (200,), (1_000, 10_000), 100_000
GOALS = {10_000: 10.0, LARGE: 100.0}
"""Milliseconds of the median search, by passages."""
UNCHANGED = 100.0
"""Milliseconds for a tree of 1,000 files in which nothing has changed."""
PARAGRAPHS, WORDS, CHARACTERS = 10, 190, 280
FIRST_DAY = date(1990, 1, 1)
TODAY = date(2026, 11, 30)
QUESTIONS = 100


class Cost(Struct, frozen=True):
    """Of one size: seconds to build, milliseconds of each search and of each look for changes, bytes of memory at its
    highest, without index and with it, and of the file."""

    build: float
    searches: tuple[float, ...]
    looks: tuple[float, ...]
    before: int
    peak: int
    file: int


class Writer:
    """Makes up paragraphs; some words come often, most rarely."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
        self._words = ["".join(self._random.choices(syllables, k=self._random.randint(1, 4))) for _ in range(20_000)]
        self._characters = [chr(0x4E00 + number) for number in self._random.sample(range(8_000), 3_000)]
        self._often = [list(accumulate(1 / (rank + 10) for rank in range(size))) for size in (20_000, 3_000)]

    def paragraph(self, number: int) -> str:
        if number % 5:
            return " ".join(self._random.choices(self._words, cum_weights=self._often[0], k=WORDS))
        return "".join(self._random.choices(self._characters, cum_weights=self._often[1], k=CHARACTERS))

    def question(self, paragraph: str) -> str:
        """Three to eight words of a paragraph, or so many characters."""
        words = paragraph.split()
        size = self._random.randint(3, 8)
        if len(words) == 1:
            start = self._random.randrange(len(paragraph) - size)
            return paragraph[start : start + size]
        return " ".join(self._random.sample(words, size))


def measure(*, quick: bool) -> Report:
    """Median and 95th percentile of searches by words, at each size."""
    return Report("Cost of memory", figures(quick=quick), ["memory is that of the process over an empty one"])


def figures(*, quick: bool) -> list[Figure]:
    sizes = QUICK if quick else (*SIZES, LARGE) if os.environ.get("LIMPET_BENCH_LARGE") else SIZES
    return [figure for size in sizes for figure in figures_of(size, _apart(size))]


def figures_of(size: int, cost: Cost) -> list[Figure]:
    name, files = f"{size:,} passages in {size // PARAGRAPHS:,} files", size // PARAGRAPHS
    ordered = sorted(cost.searches)
    return [
        Figure(name, "search, p50", median(ordered), "ms", GOALS.get(size)),
        Figure(name, "p95", ordered[int(len(ordered) * 0.95)], "ms"),
        Figure(name, "unchanged", median(cost.looks), "ms", UNCHANGED if files == 1_000 else None),
        Figure(name, "build", cost.build, "s"),
        Figure(name, "memory", max(0, cost.peak - cost.before) / 1e6, "MB"),
        Figure(name, "file", cost.file / 1e6, "MB"),
    ]


def _apart(size: int) -> Cost:
    """Measured in another process, whose memory nothing else has raised."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.memory_speed", str(size)], check=True, capture_output=True, timeout=1_800
    )
    return msgspec.json.decode(done.stdout, type=Cost)


def cost_of(size: int) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        questions = _write(Path(folder, "workspace"), size)
        shelf = Shelf(f"{folder}/index", f"{folder}/workspace", Talks(f"{folder}/none", "main", _utc))
        before, began = _peak(), time.perf_counter()
        shelf.run(lambda index: None)
        build = time.perf_counter() - began
        searches, looks = [], list[float]()
        for question in questions:
            began = time.perf_counter()
            found = shelf.run(lambda index, asked=question: find(index, asked, Wanted(), today=TODAY), fresh=False)
            searches.append((time.perf_counter() - began) * 1_000)
            assert found, question
        for _ in range(10):
            began = time.perf_counter()
            shelf.run(lambda index: None)
            looks.append((time.perf_counter() - began) * 1_000)
        file = shelf.status().size
        shelf.close()
        return Cost(build, tuple(searches), tuple(looks), before, _peak(), file)


def _write(workspace: Path, size: int) -> list[str]:
    """Write so many paragraphs; questions that some of them answer."""
    (workspace / "memory").mkdir(parents=True)
    writer, questions = Writer(), list[str]()
    settled = time.time() - 3_600
    for number in range(size // PARAGRAPHS):
        texts = [writer.paragraph(number * PARAGRAPHS + one) for one in range(PARAGRAPHS)]
        file = workspace / "memory" / f"{FIRST_DAY + timedelta(number)}.md"
        file.write_text("\n\n".join(texts), "utf-8")
        os.utime(file, (settled, settled))
        if number % max(1, size // PARAGRAPHS // QUESTIONS) == 0:
            questions.append(writer.question(texts[len(questions) % PARAGRAPHS]))
    return questions[:QUESTIONS]


def _utc(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000, UTC)


def _peak() -> int:
    """Bytes of memory of this process at its highest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1_024)


if __name__ == "__main__":
    sys.stdout.write(msgspec.json.encode(cost_of(int(sys.argv[1]))).decode())
