"""Text for terminals."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.cli.terminal import paint, pairs, printable, wrapped


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_steers_the_terminal() -> None:
    assert printable("\x1b]0;title\x07 a\rb\x9bc\u202ed\ud800") == "\ufffd]0;title\ufffd ab\ufffdc\ufffdd\ufffd"
    assert printable("ok\n\t漢字 👩‍💻 é") == "ok\n\t漢字 👩‍💻 é"


@given(st.text())
def test_what_is_printable_can_be_encoded_and_stays(text: str) -> None:
    once = printable(text)
    once.encode()
    assert "\x1b" not in once
    assert printable(once) == once


@given(st.text(st.sampled_from("ab \n"), max_size=300), st.integers(1, 60))
def test_wrapped_text_fits(text: str, columns: int) -> None:
    for line in wrapped(text, columns=columns).splitlines():
        assert len(line) <= max(20, columns) or " " not in line


def test_pairs_stack_where_it_is_narrow() -> None:
    rows = [("a-long-name", "some words of text"), ("b", "more")]
    assert pairs(rows, columns=80) == "a-long-name  some words of text\nb            more"
    assert pairs(rows, columns=20) == "a-long-name\n  some words of text\nb\n  more"


def test_colour_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paint("x", "red", stream=Screen()) == "\x1b[31mx\x1b[0m"
    assert paint("x", "red", stream=io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red", stream=Screen()) == "x"
