"""What is stored comes back equal, and what is not known comes back byte for byte."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from limpet.types.codec import decode_payload, encode_payload
from limpet.types.content import Opaque
from limpet.types.entry import AssistantEntry, Entry, ToolResultEntry, UserEntry
from tests.session.logs import any_log

clean = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(any_log())
def test_decode_of_encode_is_the_identity(log: list[Entry]) -> None:
    for entry in log:
        assert decode_payload(encode_payload(entry.payload)) == entry.payload


@given(clean, clean)
def test_an_unknown_kind_of_entry_survives(word: str, text: str) -> None:
    data = b'{"kind":"x' + msgspec.json.encode(word)[1:] + b', "v" : 1.50, "t":' + msgspec.json.encode(text) + b"}"
    payload = decode_payload(data)
    assert isinstance(payload, Opaque)
    assert encode_payload(payload) == data


@given(clean)
def test_an_unknown_block_survives_inside_a_known_entry(text: str) -> None:
    block = b'{"type":"video", "n" : 1.50, "t":' + msgspec.json.encode(text) + b"}"
    for data in (
        b'{"kind":"user","message":{"type":"user","content":[{"type":"text","text":"a"},' + block + b"]}}",
        b'{"kind":"tool_result","assistant":"e","index":0,"name":"n","result":{"content":[' + block + b"]}}",
    ):
        payload = decode_payload(data)
        assert isinstance(payload, UserEntry | ToolResultEntry | AssistantEntry)
        assert encode_payload(payload) == data
