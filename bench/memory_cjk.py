"""Chinese, Japanese and Korean notes of our own: how many questions find their note first, by words alone.

What is shown counts: a note under the least share of a search is not found. `absent` are questions that none answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cache
from pathlib import Path
from statistics import fmean

import msgspec
from msgspec import Struct

from bench.report import Figure, Report
from limpet.memory.index import Index, Passage
from limpet.memory.rank import Place
from limpet.memory.search import Result, Wanted, find

TODAY = date(2026, 11, 30)
FIRST = 0.9
"""The least share of the questions that find their note at rank 1."""


class Asked(Struct, frozen=True):
    """Notes; questions, each with the number of the note that answers it; questions that none has to do with."""

    notes: Sequence[str]
    asked: Sequence[tuple[str, int]]
    absent: Sequence[str]


@cache
def asked() -> Asked:
    return msgspec.json.decode((Path(__file__).parent / "memory_cjk_data.json").read_bytes(), type=Asked)


def missed() -> tuple[list[str], list[str]]:
    """The questions that do not find their note first, and those that find one where there is none."""
    index = Index()
    index.add(Passage(text, Place("notes", 2 * number)) for number, text in enumerate(asked().notes))

    def found(question: str) -> list[Result]:
        return find(index, question, Wanted(1), today=TODAY)

    wrong = [text for text, note in asked().asked if [one.first.place.position for one in found(text)] != [2 * note]]
    absent = [text for text in asked().absent if found(text)]
    index.close()
    return wrong, absent


def figures() -> list[Figure]:
    wrong, absent = missed()
    first = fmean(text not in wrong for text, _ in asked().asked)
    none = fmean(text not in absent for text in asked().absent)
    name = f"{len(asked().notes)} notes in zh, ja, ko, words"
    return [Figure(name, "at rank 1", first, "", floor=FIRST), Figure(name, "nothing where nothing is", none, "")]


def measure(*, quick: bool) -> Report:
    """The same whether quick or not."""
    return Report("Memory in Chinese, Japanese and Korean", figures(), [f"{len(asked().asked)} questions"])
