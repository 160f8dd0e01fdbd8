from hypothesis import given
from hypothesis import strategies as st

from limpet.tools.output import Collector, clean, to_text


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
