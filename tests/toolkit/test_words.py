"""Words for a full-text index, in scripts with and without spaces."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.toolkit.words import indexed, query


def finds(text: str, words: str, *, every: bool = True) -> bool:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE w USING fts5(t, tokenize='porter unicode61 remove_diacritics 2')")
    connection.execute("INSERT INTO w VALUES (?)", (indexed(text),))
    wanted = query(words, every=every)
    found = bool(wanted) and connection.execute("SELECT 1 FROM w WHERE w MATCH ?", (wanted,)).fetchone() is not None
    connection.close()
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The tests are running.", "run test"),
        ("每隔一周的周二上午十点开预算会议。", "预算会议"),
        ("我的猫叫味噌", "猫"),
        ("部署服务器监听 8443 端口", "服务器 8443"),
        ("東京タワーに行きました", "タワー"),
        ("내일 서울에서 만나요", "서울"),
        ("Crème brûlée", "creme"),
        ("\uff26\uff55\uff4c\uff4c width", "full"),
        ("see foo-bar.py there", "foo-bar.py"),
        ('say "quoted" AND (more)', '"quoted" AND'),
    ],
)
def test_words_are_found(text: str, words: str) -> None:
    assert finds(text, words)


@pytest.mark.parametrize(
    ("text", "words"), [("研究生命起源", "究命"), ("one two", "one three"), ("anything", "!!! ---"), ("anything", "")]
)
def test_other_words_are_not(text: str, words: str) -> None:
    assert not finds(text, words)


def test_any_word_is_enough_where_not_every_one_is_asked_for() -> None:
    assert finds("one two", "one three", every=False)


@given(st.text(max_size=40))
def test_whatever_is_typed_is_no_syntax(words: str) -> None:
    finds("some text", words)
    finds("some text", words, every=False)


@given(st.text(alphabet="预算会议的周二ab 1", min_size=1, max_size=12))
def test_every_text_is_found_by_itself(text: str) -> None:
    assert finds(text, text) or not text.strip()
