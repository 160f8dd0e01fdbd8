from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from limpet.channels.kept import MOST_PLACES, Kept, noted


class Thing(Struct, frozen=True):
    name: str = ""


def test_what_was_saved_is_there_in_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    kept = Kept(str(folder), "thing.json", Thing())
    assert kept.value == Thing()
    kept.save(Thing("one"))
    kept.save(Thing("two"))
    assert Kept(str(folder), "thing.json", Thing()).value == kept.value == Thing("two")
    assert [(file.name, file.stat().st_mode & 0o777) for file in folder.iterdir()] == [("thing.json", 0o600)]
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("raw", [b"", b"{", b'{"name": 7}'])
def test_a_file_that_cannot_be_read_counts_as_none(
    tmp_path: Path, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "thing.json").write_bytes(raw)
    assert Kept(str(tmp_path), "thing.json", Thing()).value == Thing()
    assert "cannot be read" in caplog.text


@given(st.lists(st.tuples(st.integers(0, 700).map(str), st.integers().map(str)), max_size=900))
def test_the_places_with_the_newest_messages_stay(messages: list[tuple[str, str]]) -> None:
    marks: dict[str, str] = {}
    for place, mark in messages:
        marks = noted(marks, place, mark)
    newest = list(dict.fromkeys(place for place, _ in reversed(messages)))[:MOST_PLACES]
    assert marks == {place: dict(messages)[place] for place in newest}
    assert list(marks) == newest[::-1]
