"""Characters that nobody sees."""

from __future__ import annotations

import pytest

from limpet.toolkit.unseen import hidden_in, is_unseen


@pytest.mark.parametrize("character", "\u200b\u202e\u3164\u2800\u034f\ufe0f\x1b\n\u00ad")
def test_what_cannot_be_seen(character: str) -> None:
    assert is_unseen(character)


@pytest.mark.parametrize("character", "aÄ中🙂 é")
def test_what_can(character: str) -> None:
    assert not is_unseen(character)


@pytest.mark.parametrize("text", ["plain", "Grüße, 世界", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f"])
def test_ordinary_prose_hides_nothing(text: str) -> None:
    assert hidden_in(text) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\u200b\u200bb", {"U+200B": 2}),
        ("\U000e0041\U000e0042", {"U+E0041": 1, "U+E0042": 1}),
        ("x\ufe00\ufe01\ufe02", {"U+FE01": 1, "U+FE02": 1}),
    ],
)
def test_what_hides_words_is_counted(text: str, found: dict[str, int]) -> None:
    assert hidden_in(text) == found
