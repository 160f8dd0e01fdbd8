"""Cuts, prunes and stand-ins: whatever is decided, requests stay valid and nothing is lost between two parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from limpet.session.cut import cut, cut_points, files_touched
from limpet.session.project import project
from limpet.session.prune import CLEARED, aged_images, prunes, shortened
from limpet.session.room import room_of
from limpet.session.stand_in import stand_in, without_model
from limpet.session.tree import visible
from limpet.types.content import Image, Text
from limpet.types.entry import Compaction, Entry, ImageAged, Prune, ToolResultEntry, ToolStarted, UserEntry
from limpet.types.message import ToolMessage, UserMessage
from limpet.types.tool import Details, FileIntent, ToolResult, text_result
from tests.session.logs import Builder, any_log
from tests.session.test_project import check

PICTURE = Image(blob="b", mime="image/png", name="cat.png", width=640, height=480)


def ten(entry: Entry) -> int:
    return 10


@given(any_log(), st.integers(0, 200))
def test_a_compaction_at_any_cut_covers_or_keeps_each_entry_and_projects_well(log: list[Entry], keep: int) -> None:
    _, seen = visible(log)
    place = cut(seen, keep, weigh=ten)
    if place:
        builder = Builder()
        builder.entries, builder.leaf = list(log), seen[-1].id
        builder.add(stand_in("so far", seen[:place], seen[place:], before=None, tokens=100))
        summary, kept = visible(builder.entries)
        assert [entry.id for entry in kept[:-1]] == [entry.id for entry in seen[place:]]
        assert summary.startswith("so far")
        check(project(builder.entries))


@given(any_log())
def test_no_cut_parts_a_call_from_its_results(log: list[Entry]) -> None:
    _, seen = visible(log)
    for point in cut_points(seen):
        kept = {entry.id for entry in seen[point:]}
        for entry in seen[point:]:
            if isinstance(entry.payload, ToolResultEntry) and entry.payload.assistant in {one.id for one in seen}:
                assert entry.payload.assistant in kept


@given(any_log(), st.lists(st.sampled_from(["soft", "hard"]), max_size=3))
def test_pruned_logs_project_well_and_the_rest_stays_the_same(log: list[Entry], hows: list[str]) -> None:
    builder = Builder()
    builder.entries, builder.leaf = list(log), visible(log)[1][-1].id if visible(log)[1] else ""
    before = project(builder.entries)
    results = tuple(entry.id for entry in log if isinstance(entry.payload, ToolResultEntry))
    for how in hows:
        builder.add(Prune(results, how="hard" if how == "hard" else "soft"))
    after = project(builder.entries)
    check(after)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert all(isinstance(old, ToolMessage) for old, _ in changed)


def tool_turns(count: int, size: int) -> Builder:
    log = Builder()
    for number in range(count):
        log.user(f"question {number}")
        log.result(log.assistant(calls=(f"c{number}",)), 0, f"{number} " + "x" * size)
        log.assistant("answer")
    return log


def test_nothing_is_pruned_while_there_is_space() -> None:
    assert prunes(tool_turns(10, 9_000).entries, 20_000, room_of(128_000)) == []


def test_old_long_results_are_shortened_first() -> None:
    (made,) = prunes(tool_turns(6, 9_000).entries, 60_000, room_of(128_000))
    assert made.how == "soft"
    assert len(made.targets) == 5, "the three newest answers keep theirs: all of the last turn, one of that before"


def test_the_oldest_are_cleared_until_half_the_window_is_free() -> None:
    log = tool_turns(40, 3_900)
    (made,) = prunes(log.entries, 70_000, room_of(128_000))
    assert made.how == "hard"
    assert made.targets[0] == next(e.id for e in log.entries if isinstance(e.payload, ToolResultEntry))
    assert len(made.targets) == 7, "6,000 tokens of 975 each"


def test_what_is_pruned_stays_pruned_and_is_not_decided_again() -> None:
    log = tool_turns(6, 9_000)
    (made,) = prunes(log.entries, 60_000, room_of(128_000))
    log.add(made)
    assert prunes(log.entries, 50_000, room_of(128_000)) == []
    texts = [m.content[0].text for m in project(log.entries) if isinstance(m, ToolMessage) and len(m.content) == 1]
    assert [len(text) < 3_200 for text in texts] == [True] * 5 + [False]


def test_results_with_pictures_are_left_alone() -> None:
    log = tool_turns(6, 9_000)
    first = next(entry for entry in log.entries if isinstance(entry.payload, ToolResultEntry))
    shown = ToolResult(content=(Text("x" * 9_000), PICTURE))
    place = log.entries.index(first)
    assert isinstance(first.payload, ToolResultEntry)
    log.entries[place] = Entry(
        session="s", seq=first.seq, id=first.id, parent=first.parent, at=1, turn="t",
        payload=ToolResultEntry(assistant=first.payload.assistant, index=0, name="exec", result=shown),
    )  # fmt: skip
    (made,) = prunes(log.entries, 60_000, room_of(128_000))
    assert first.id not in made.targets


def test_a_shortened_result_says_how_much_is_missing() -> None:
    (block,) = shortened(text_result("a" * 5_000 + "b" * 5_000), "soft")
    assert isinstance(block, Text)
    assert block.text.startswith("aaa")
    assert block.text.endswith("bbb")
    assert "7,000 of 10,000 characters left out" in block.text
    assert shortened(text_result("a" * 10), "hard") == (Text(CLEARED.format(size=10)),)


def test_images_age_after_three_turns() -> None:
    log = Builder()
    turns = ["t1", "t2", "t3", "t4"]
    for number, turn in enumerate(turns):
        entry = UserEntry(UserMessage((Text(f"look {number}"), PICTURE)))
        log.add(entry)
        log.entries[-1] = Entry(
            session="s", seq=number + 1, id=f"e{number + 1}", parent=log.entries[-1].parent, at=1, turn=turn,
            payload=entry,
        )  # fmt: skip
    (made,) = aged_images(log.entries)
    assert made == ImageAged(("e1",))
    log.add(made)
    assert aged_images(log.entries) == []
    (message,) = project(log.entries)
    blocks = message.content
    assert Text("[image: cat.png, 640x480]") in blocks
    assert sum(isinstance(block, Image) for block in blocks) == 3


def test_a_stand_in_names_files_and_quotes_the_open_message() -> None:
    log = Builder()
    log.user("mend the roof")
    answer = log.assistant(calls=("c1", "c2"))
    for index, path in enumerate(("/w/read.md", "/w/changed.md")):
        if index:
            intent = FileIntent(path=path, before="", after="x")
            log.add(ToolStarted(assistant=answer, index=index, name="write_file", effect="file", intent=intent))
        done = ToolResult(content=(Text("ok"),), details=Details(path=path, sha256="x"))
        log.add(ToolResultEntry(assistant=answer, index=index, name="exec", result=done))
    log.assistant("going on")
    assert files_touched(log.entries) == (["/w/read.md"], ["/w/changed.md"])
    earlier = Compaction(summary="", first_kept="e1", read=("/w/changed.md", "/w/old.md"))
    made = stand_in("Roofing.", log.entries[:-1], log.entries[-1:], before=earlier, tokens=100)
    assert made.changed == ("/w/changed.md",)
    assert made.read == ("/w/old.md", "/w/read.md")
    assert "## The message being worked on, word for word\nmend the roof" in made.summary


def test_rules_alone_keep_what_people_said_in_few_words() -> None:
    log = Builder()
    for number in range(50):
        log.user(f"wish {number} " + "and so on " * 100)
    text = without_model(log.entries, "An earlier summary.", tokens=600)
    assert "An earlier summary." in text
    assert "wish 49" in text
    assert len(text) < 2_400


@given(st.integers(1_000, 2_000_000))
def test_every_window_leaves_room_for_an_answer_and_something_to_keep(window: int) -> None:
    room = room_of(window)
    assert 0 < room.summary < room.reserve < room.limit < window
    assert room.keep + room.summary < room.limit
    assert room.soft < room.hard < room.limit
