"""The threshold of recall: which share of a message a note must hold to be put before the model unasked.

A labelled set of notes and messages with and without an answer (`recall_data.json`). Precision: of the messages with
something recalled, those with the right note first. Recall: of the messages with an answer, those that get it among
the three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.memory import Embed, cosines_of, local_embedder
from bench.report import Figure, Report
from limpet.memory.index import Index, Passage
from limpet.memory.rank import Place
from limpet.memory.recall import ITEMS, THRESHOLD, is_worth
from limpet.memory.search import Wanted, find

TRIED = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8)
TODAY = date(2026, 11, 30)
PRECISION, RECALL = 0.95, 0.9
"""The least that the threshold in force may give, by words alone."""


class Labelled(Struct, frozen=True):
    """Notes; messages, each with the number of the note that answers it; messages that none has to do with."""

    notes: tuple[str, ...]
    answered: tuple[tuple[str, int], ...]
    unanswered: tuple[str, ...]


@cache
def labelled() -> Labelled:
    return msgspec.json.decode((Path(__file__).parent / "recall_data.json").read_bytes(), type=Labelled)


def measure(*, quick: bool) -> Report:
    """Precision and recall at several thresholds, by words alone and with the local vectors."""
    index = Index()
    index.add(Passage(text, Place("notes", 2 * number)) for number, text in enumerate(labelled().notes))
    figures: list[Figure] = []
    embed = None if quick else local_embedder()
    for how, encode in (("words", None), ("words and vectors", embed)):
        if how == "words" or encode:
            found = _found(index, encode)
            figures += [figure for score in TRIED for figure in _at(found, score, how)]
    return Report("Recall", figures, [f"the threshold in force is {THRESHOLD}"])


def _found(index: Index, embed: Embed | None) -> Mapping[str, Sequence[tuple[int, float]]]:
    """(note, share) of what is found for each message, best first."""
    vectors = embed(labelled().notes) if embed else []
    found: dict[str, Sequence[tuple[int, float]]] = {}
    for message in (*(text for text, _ in labelled().answered), *labelled().unanswered):
        near = cosines_of(embed([message])[0], vectors) if embed else {}
        wanted = Wanted(ITEMS, 0.0, by_day=False)
        results = find(index, message, wanted, today=TODAY, cosines=near) if is_worth(message) else []
        found[message] = [(result.first.place.position // 2, result.share) for result in results]
    return found


def _at(found: Mapping[str, Sequence[tuple[int, float]]], score: float, how: str) -> list[Figure]:
    shown = {text: [note for note, share in notes if share >= score] for text, notes in found.items()}
    recalled = [text for text, notes in shown.items() if notes]
    right = sum(note in shown[text][:1] for text, note in labelled().answered)
    hits = sum(note in shown[text] for text, note in labelled().answered)
    wrongly = sum(bool(shown[text]) for text in labelled().unanswered)
    row = f"{how}, {score:.2f}"
    goal = how == "words" and score == THRESHOLD
    return [
        Figure(row, "precision", right / len(recalled) if recalled else 1.0, "", floor=PRECISION if goal else None),
        Figure(row, "recall", hits / len(labelled().answered), "", floor=RECALL if goal else None),
        Figure(row, "recalled for nothing", wrongly / len(labelled().unanswered), ""),
    ]
