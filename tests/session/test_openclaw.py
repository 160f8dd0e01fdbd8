"""OpenClaw's and Pi's tree format: whatever a log holds, each line is an entry that hangs on an earlier one."""

from __future__ import annotations

import json

from hypothesis import given

from limpet.session.openclaw import openclaw
from limpet.store.sessions import SessionRow
from limpet.types.content import Image, Text
from limpet.types.entry import Compaction, Entry, Leaf, ModelChange, Note, UserEntry
from limpet.types.message import UserMessage
from tests.session.logs import Builder, any_log

ROW = SessionRow(
    id="s1", key="agent:main:main", agent="main", owner="", epoch=0, title="", model="", parent="s0",
    created=1_750_000_000_123, updated=0, ended=None, end_reason="", thinking="", summary="", closing=0, cache_key="",
    erasures=0,
)  # fmt: skip


def read(blob: str) -> bytes:
    if blob != "here":
        raise FileNotFoundError(blob)
    return b"png"


def lines(log: list[Entry]) -> list[dict[str, object]]:
    return [json.loads(line) for line in openclaw(ROW, log, folder="/w", read=read).splitlines()]


@given(any_log())
def test_every_entry_is_a_line_that_hangs_on_an_earlier_one(log: list[Entry]) -> None:
    header, *found = lines(log)
    assert header == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2025-06-15T15:06:40.123Z",
        "cwd": "/w",
        "parentSession": "s0",
    }
    assert [line["id"] for line in found] == [entry.id for entry in log]
    known: set[object] = {None}
    for line in found:
        assert line["parentId"] in known
        known.add(line["id"])


def test_what_the_kinds_become() -> None:
    log = Builder()
    first = log.add(UserEntry(UserMessage((Text("hi"), Image("here", "image/png"), Image("gone", "image/png", "cat")))))
    log.add(Compaction(summary="so far", first_kept=first, tokens_before=9))
    log.add(ModelChange("openai/gpt-5"))
    log.add(Note("changed", origin="prompt"))
    log.add(Leaf(first))
    _, user, compaction, change, note, leaf = lines(log.entries)
    assert [block["type"] for block in user["message"]["content"]] == ["text", "image", "text"]  # pyright: ignore
    assert user["message"]["content"][1] == {"type": "image", "data": "cG5n", "mimeType": "image/png"}  # pyright: ignore
    assert (compaction["summary"], compaction["firstKeptEntryId"], compaction["tokensBefore"]) == ("so far", first, 9)
    assert (change["provider"], change["modelId"]) == ("openai", "gpt-5")
    assert (note["type"], note["content"], note["display"]) == ("custom_message", "changed", False)
    assert (leaf["type"], leaf["parentId"], leaf["customType"]) == ("custom", first, "limpet:leaf")
