from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.eventstream import Frame, FrameError, FrameParser, frame

HEADERS = st.dictionaries(st.text("abc:-", min_size=1, max_size=9), st.text(max_size=20), max_size=3)


@given(st.lists(st.tuples(HEADERS, st.binary(max_size=50)), max_size=4), st.integers(1, 30))
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames, size: int):
    data = b"".join(frame(headers, payload) for headers, payload in frames)
    parser = FrameParser()
    found = [item for at in range(0, len(data), size) for item in parser.feed(data[at : at + size])]
    assert found == [Frame(headers, payload) for headers, payload in frames]
    assert not parser.pending


@pytest.mark.parametrize("at", [0, 9, 14, 20, -1])
def test_damage_is_noticed(at: int):
    data = bytearray(frame({":event-type": "x"}, b"payload"))
    data[at] ^= 1
    with pytest.raises(FrameError):
        FrameParser().feed(bytes(data))


def test_headers_that_are_no_texts_are_skipped():
    whole = frame({"a": "b"}, b"")
    head = b"\x01n\x02\x05" + b"\x01t\x00" + whole[12:-4]
    assert dict(FrameParser().feed(_framed(head))[0].headers) == {"a": "b"}


def test_a_header_of_unknown_kind_is_damage():
    with pytest.raises(FrameError, match="kind"):
        FrameParser().feed(_framed(b"\x01n\x30"))


def _framed(head: bytes) -> bytes:
    import struct
    from zlib import crc32

    lengths = struct.pack(">II", 16 + len(head), len(head))
    data = lengths + crc32(lengths).to_bytes(4, "big") + head
    return data + crc32(data).to_bytes(4, "big")
