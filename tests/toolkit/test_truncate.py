import asyncio

from hypothesis import given
from hypothesis import strategies as st

from limpet.testing.context import Recorded, tool_context
from limpet.toolkit.spill import capped
from limpet.toolkit.truncate import count_lines, ends, head, tail

texts = st.text(st.sampled_from("ab é\n\r👍🏽\u0301\u200d🇩🇪"), max_size=200)
caps = st.integers(0, 60)


@given(texts, caps, caps)
def test_head_adds_up_and_keeps_whole_lines(text, lines, chars):
    cut = head(text, lines=lines, chars=chars)
    assert len(cut.head) + cut.omitted == cut.total == len(text)
    assert text.startswith(cut.head)
    assert len(cut.head) <= chars
    assert count_lines(cut.head) <= lines
    assert cut.whole or cut.head == "" or cut.head.endswith("\n")


@given(texts, caps, caps)
def test_tail_adds_up(text, lines, chars):
    cut = tail(text, lines=lines, chars=chars)
    assert len(cut.tail) + cut.omitted == cut.total == len(text)
    assert text.endswith(cut.tail)
    assert len(cut.tail) <= chars
    assert count_lines(cut.tail) <= lines


@given(texts, st.integers(1, 60), st.floats(0, 1))
def test_ends_add_up(text, chars, share):
    cut = ends(text, chars=chars, share=share)
    assert len(cut.head) + cut.omitted + len(cut.tail) == cut.total == len(text)
    assert text.startswith(cut.head)
    assert text.endswith(cut.tail)
    assert len(cut.head) + len(cut.tail) <= chars


@given(texts)
def test_lines_are_counted_as_people_do(text):
    parts = text.split("\n")
    assert count_lines(text) == len(parts) - (parts[-1] == "")


def test_what_belongs_together_is_not_cut():
    for unit in ("e\u0301", "👍🏽", "👩\u200d💻", "🇩🇪", "\r\n"):
        text = unit * 40
        for chars in range(8, 40):
            cut = ends(text, chars=chars)
            assert len(cut.head) % len(unit) == 0, (unit, chars)
            assert len(cut.tail) % len(unit) == 0, (unit, chars)


def test_short_results_are_left_alone(tmp_path):
    assert asyncio.run(capped("short", tool_context(tmp_path))) == ("short", "", 0)


def test_long_results_are_spilled_whole(tmp_path):
    context = tool_context(tmp_path, result_limit=2_000)
    text = "".join(f"line {number}\n" for number in range(1_000))
    shown, blob, omitted = asyncio.run(capped(text, context))
    assert len(shown) <= 2_000
    assert context.blobs.get(blob).decode() == text
    assert context.blobs.path(blob) in shown
    assert f"{omitted:,} of {len(text):,} characters" in shown
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 999\n")


def test_secrets_reach_neither_result_nor_spill(tmp_path):
    recorded = Recorded(secrets={"KEY": "tvly-AAAA1111BBBB"})
    context = tool_context(tmp_path, result_limit=1_000, recorded=recorded)
    shown, blob, _ = asyncio.run(capped("x tvly-AAAA1111BBBB\n" * 500, context))
    assert "tvly" not in shown
    assert b"tvly" not in context.blobs.get(blob)
