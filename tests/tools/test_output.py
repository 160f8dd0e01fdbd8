import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.tools.output import Collector, clean, cut_off, to_text


@given(st.lists(st.text("ab\n", max_size=50)), st.integers(2, 100))
def test_collector_keeps_both_ends_and_counts(chunks, limit):
    collector = Collector(limit)
    for chunk in chunks:
        collector.add(chunk.encode())
    whole, half = "".join(chunks), limit // 2
    assert collector.total == len(whole)
    kept = collector.take_text()
    if len(whole) <= 2 * half:
        assert kept == whole
    else:
        assert kept == f"{whole[:half]}\n[... {len(whole) - 2 * half} bytes of output not kept ...]\n{whole[-half:]}"
    assert collector.take_text() in ("", f"\n[... {len(whole)} bytes of output not kept ...]\n")


def test_collector_with_many_blocks_and_very_long_lines():
    collector = Collector(8_000_000)
    text = "é" * 1_500_000 + "\nend"
    data = text.encode()
    for place in range(0, len(data), 9_999):
        collector.add(data[place : place + 9_999])
    assert collector.take_text() == text


@given(st.binary(max_size=200))
def test_any_bytes_become_text(data):
    to_text(data).encode("utf-8")
    to_text(data, fallback="cp936").encode("utf-8")


def test_colours_titles_and_cursor_are_removed():
    assert clean("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b[2K\x1b(By") == "red xy"


def test_progress_keeps_its_last_state():
    assert clean("10%\r50%\r100%\r\nok\r\n") == "100%\nok\n"


def test_backspaces_take_back():
    assert clean("ab\x08\x08xy\x08z\x08") == "x"


def test_odd_bytes_stay_readable_by_line():
    assert to_text(b"\xff\xfeabc\ncaf\xc3\xa9") == "\\xff\\xfeabc\ncafé"
    assert to_text("中文\n".encode("gbk") + "é".encode(), fallback="cp936") == "中文\né"
    assert to_text(b"\xff", fallback="no-such-encoding") == "\\xff"


@given(st.lists(st.binary(max_size=30), max_size=12), st.integers(0, 400), st.integers(2, 120))
def test_what_came_since_is_the_end_of_all_or_says_what_is_missing(pieces, place, limit):
    collector = Collector(limit)
    for piece in pieces:
        collector.add(piece)
    whole = b"".join(pieces)
    first, left_out, last = collector.since(place)
    assert len(first) + left_out + len(last) == max(len(whole) - place, 0)
    wanted = whole[place:]
    assert wanted.startswith(first)
    assert wanted.endswith(last)


@given(st.lists(st.binary(max_size=30), max_size=12), st.integers(2, 120), st.integers(2, 60))
def test_shrinking_keeps_beginning_and_end(pieces, limit, smaller):
    collector = Collector(limit)
    for piece in pieces:
        collector.add(piece)
    whole = b"".join(pieces)
    collector.shrink(smaller)
    first, left_out, last = collector.since(0)
    assert len(first) + left_out + len(last) == len(whole)
    assert len(first) + len(last) <= smaller
    assert whole.startswith(first)
    assert whole.endswith(last)


@pytest.mark.parametrize(
    ("data", "held"),
    [(b"abc", 0), (b"caf\xc3", 1), (b"\xe4\xb8", 2), ("中".encode(), 0), (b"a\r", 1), (b"a\r\n", 0), (b"x\x1b[31", 4),
     (b"x\x1b[31m", 0), (b"x\x1b", 1), (b"\x1b]0;title", 9), (b"\x1b]0;title\x07", 0), (b"\xff", 1)],
)  # fmt: skip
def test_what_may_not_be_complete_is_held_back(data, held):
    assert cut_off(data) == held
