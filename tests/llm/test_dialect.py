from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.dialect import Piece, Shown, TextFilter, Thought, Written
from limpet.testing.wires import tool

TOOLS = (
    tool("exec", parameters=b'{"type":"object","properties":{"command":{"type":"string"},"count":{"type":"integer"}}}'),
)
MINIMAX = (
    '<minimax:tool_call><invoke name="exec"><parameter name="command">echo a &amp;&amp; echo b</parameter>'
    "</invoke></minimax:tool_call>"
)
ALL = ("minimax", "hermes", "json", "mistral")


def run(pieces: list[str], *, think: bool = True, dialects: tuple[str, ...] = ALL, tools=TOOLS) -> list[Piece]:
    text_filter = TextFilter(think=think, dialects=dialects, tools=tools)
    return [piece for text in pieces for piece in text_filter.feed(text)] + text_filter.finish()


def shown(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Shown))


def calls(pieces: list[Piece]) -> list[tuple[str, object]]:
    return [(piece.name, json.loads(piece.arguments)) for piece in pieces if isinstance(piece, Written)]


ECHO = [("exec", {"command": "echo a && echo b"})]
CASES = [
    (MINIMAX, "", ECHO),
    ("Let me see.\n" + MINIMAX + "\n", "Let me see.\n\n", ECHO),
    ('{"name":"exec","arguments":{"command":"echo hi"}}', "", [("exec", {"command": "echo hi"})]),
    ('{"name":"nope","arguments":{"a":1}}', '{"name":"nope","arguments":{"a":1}}', []),
    (f"Like this:\n```xml\n{MINIMAX}\n```\nDone.", f"Like this:\n```xml\n{MINIMAX}\n```\nDone.", []),
    (f"Write `{MINIMAX}` to run.", f"Write `{MINIMAX}` to run.", []),
    ("<think>long plan<final>Answer 42</final>", "Answer 42", []),
    ("<think>x</think>Hello", "Hello", []),
    ("<think>x</think>\n\nHello", "Hello", []),
    ("<think>never ends", "", []),
    (
        '<think>plan</think><tool_call>{"name":"exec","arguments":{"command":"a"}}</tool_call>',
        "",
        [("exec", {"command": "a"})],
    ),
    ('<think>plan</think>{"name":"exec","arguments":{"command":"a"}}', "", [("exec", {"command": "a"})]),
    (
        '<tool_call>{"name":"other","arguments":{}}</tool_call>',
        '<tool_call>{"name":"other","arguments":{}}</tool_call>',
        [],
    ),
    ('[TOOL_CALLS][{"name":"exec","arguments":{"command":"a"}}]', "", [("exec", {"command": "a"})]),
    ("a < b, <thin ice, a <", "a < b, <thin ice, a <", []),
    ('{"answer": 42}', '{"answer": 42}', []),
    (
        '<minimax:tool_call><invoke name="exec"><parameter name="count">3</parameter></invoke></minimax:tool_call>',
        "",
        [("exec", {"count": 3})],
    ),
]


@pytest.mark.parametrize(("text", "seen", "made"), CASES)
def test_dialects(text: str, seen: str, made: list[tuple[str, object]]):
    pieces = run([text])
    assert (shown(pieces), calls(pieces)) == (seen, made)


@given(st.sampled_from(CASES), st.lists(st.integers(0, 200), max_size=8))
def test_where_the_stream_is_cut_makes_no_difference(case, cuts: list[int]):
    text, seen, made = case
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = run([text[start:end] for start, end in itertools.pairwise(places)])
    assert (shown(pieces), calls(pieces)) == (seen, made)


@pytest.mark.parametrize(("text", "seen", "made"), CASES)
def test_character_by_character(text: str, seen: str, made: list[tuple[str, object]]):
    pieces = run(list(text))
    assert (shown(pieces), calls(pieces)) == (seen, made)


def test_a_block_that_never_ends_is_a_cut_off_call_and_shows_nothing():
    pieces = run([MINIMAX[:80]])
    assert shown(pieces) == ""
    assert [piece.fault != "" for piece in pieces if isinstance(piece, Written)] == [True]


def test_reasoning_is_given_as_thought():
    pieces = run(["<thi", "nk>pl", "an</thi", "nk>Hi"])
    assert "".join(piece.text for piece in pieces if isinstance(piece, Thought)) == "plan"


def test_plain_text_passes_at_once():
    text_filter = TextFilter(think=True, dialects=(), tools=())
    assert text_filter.feed("Hello") == [Shown("Hello")]


def test_without_offered_tools_no_call_is_read():
    assert shown(run([MINIMAX], tools=())) == MINIMAX
