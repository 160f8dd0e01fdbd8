"""Finding passages again by words, alone and with vectors."""

from __future__ import annotations

from datetime import date

import pytest

from limpet.memory.index import Index, Passage
from limpet.memory.rank import Place

TODAY = date(2024, 5, 15)
NOTES = (
    "今天玩成语接龙游戏",
    "桌面后端watchdog会误杀健康进程",
    "오늘 끝말잇기 게임을 했다",
    "deploy notes for host alpha-7",
)


def index_of(*texts: str) -> Index:
    index = Index()
    index.add(Passage(text, Place("notes", 2 * place)) for place, text in enumerate(texts))
    return index


def best(index: Index, question: str) -> list[int]:
    return [hit.id for hit in index.search(question, today=TODAY)]


@pytest.mark.parametrize(
    ("question", "place"),
    [("成语接龙", 1), ("接龙", 1), ("后端", 2), ("watchdog", 2), ("끝말잇기", 3), ("alpha-7", 4), ("ALPHA", 4)],
)
def test_each_script_is_found_at_rank_1(question: str, place: int) -> None:
    assert best(index_of(*NOTES), question)[:1] == [place]


@pytest.mark.parametrize("question", ["火星", "", "   ", '"', "*", "AND", "a OR -", "NEAR(", "what is it"])
def test_nothing_is_found_for_nothing(question: str) -> None:
    assert best(index_of(*NOTES), question) == []


def test_vectors_find_what_words_do_not() -> None:
    index = index_of("the cat is asleep", "we sold the boat")
    hits = index.search("pets", today=TODAY, cosines={1: 0.9, 2: 0.1})
    assert hits[0].id == 1


def test_context_is_searched_and_belongs_to_the_passage() -> None:
    index = Index()
    index.add([Passage("yes, on Monday", Place("a", 0), context="Will the piano be tuned?")])
    assert best(index, "piano") == [1]
