"""Markdown, diffs and calls as lines of a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.cli import chat_render as render
from limpet.cli.chat_answer import Answer
from limpet.cli.chat_screen import cells

TABLE = "| a | b |\n|---|---|\n"
PIECES = ("# Head\n", "\n", "- one\n", "1. first\n", "text ", "\n\n", "```\ncode\n", "```\n", TABLE, "> q\n")


def plain(shown: list[str]) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(shown))


def test_tags_are_text_and_addresses_are_shown() -> None:
    shown = plain(render.lines_of(render.markdown("List<String> <b>x</b> [here](http://a.example/x)"), width=78))
    assert "List<String> <b>x</b>" in shown
    assert "http://a.example/x" in shown


def test_a_model_cannot_steer_the_terminal() -> None:
    shown = "\n".join(render.lines_of(render.markdown("a\x1b]0;title\x07b `\x1b[2J`"), width=78))
    assert "\x1b]" not in shown
    assert "\x1b[2J" not in shown


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(20, 90))
def test_no_line_is_wider_than_the_window(pieces: list[str], width: int) -> None:
    for line in render.lines_of(render.markdown("".join(pieces)), width=width):
        assert cells(line) <= width


@given(st.lists(st.sampled_from(PIECES), max_size=15))
def test_the_pieces_of_an_answer_are_the_answer(pieces: list[str]) -> None:
    written: list[str] = []
    answer = Answer(written.append)
    for piece in pieces:
        answer.add(piece)
        answer.settle()
    answer.flush()
    assert "".join(written).rstrip() == "".join(pieces).rstrip()


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("one\n\ntwo", ""),
        ("one\n\ntwo\n", "one\n\n"),
        ("- a\n\n- b\n", ""),
        ("1. a\n\n2", ""),
        ("```\na\n\nb\n", ""),
        ("| a |\n|---|\n| 1 |\n\nnext\n", "| a |\n|---|\n| 1 |\n\n"),
    ],
)
def test_only_what_cannot_change_any_more_is_settled(text: str, done: str) -> None:
    assert text[: render.settled(text)] == done


def test_a_diff_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = "\n".join(render.lines_of(render.diff("--- a\n+++ b\n-old\n+new\n"), width=40))
    assert "\x1b[31m  -old" in shown
    assert "\x1b[32m  +new" in shown


def test_a_call_is_one_line() -> None:
    assert render.call_line("exec", '{"command": "ls\\n-l"}') == "exec ls -l"
    assert render.call_line("edit_file", '{"path": "a", "all": true}') == "edit_file path=a, all=true"
    assert render.call_line("exec", "{broken") == "exec {broken"
