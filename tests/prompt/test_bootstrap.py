"""Cutting and counting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.prompt.bootstrap import Allowance, cut, estimate


@given(st.text(st.sampled_from("ab\n"), max_size=400), st.integers(80, 300))
def test_a_cut_text_fits_and_names_its_file(text: str, cap: int) -> None:
    short = cut(text, cap, "SOUL.md")
    assert len(short) <= cap
    assert short == text or "[SOUL.md is cut here" in short


def test_the_cut_is_at_a_line() -> None:
    assert cut("one line\n" * 30, 120, "X.md").splitlines()[-2:] == [
        "one line",
        "[X.md is cut here: 270 characters in all; read the file for the rest]",
    ]


def test_what_is_used_up_is_used_up() -> None:
    allowance = Allowance(file_cap=500, total_cap=600, tokens=10_000)
    assert len(allowance.take("a" * 1000, "A.md")) <= 500
    assert len(allowance.take("b" * 1000, "B.md")) <= 100
    assert allowance.take("c" * 1000, "C.md").startswith("[C.md is cut here")


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("日本語の文字" * 4, 14, 36), ("汉字" * 80, 96, 240), ("a word or two " * 28 + "seven", 80, 130)],
)
def test_c25_the_estimate_is_near_for_each_script(text: str, least: int, most: int) -> None:
    assert least <= estimate(text) <= most
