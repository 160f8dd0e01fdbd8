"""Places of a tree: whatever a log holds, a fork sees what its origin saw, and a move leads where it says."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from limpet.errors import InputError
from limpet.session import branch
from limpet.session.log import Log
from limpet.session.project import project
from limpet.types.entry import Entry, Label, Leaf
from tests.session.logs import Builder, any_log
from tests.session.test_project import check


@given(any_log())
def test_a_fork_projects_to_what_its_origin_does(log: list[Entry]) -> None:
    facts = {entry.id for entry in log if isinstance(entry.payload, Leaf)}
    assume(not any(isinstance(entry.payload, Leaf) and entry.payload.target in facts for entry in log))  # none is made
    line = branch.line_with_labels(log, Log(log).leaf)
    assert project(line) == project(log)
    assert Log(line).prompt == Log(log).prompt


@given(any_log(), st.lists(st.integers(1, 8), max_size=4))
def test_any_moves_project_well_and_keep_all_entries(log: list[Entry], moves: list[int]) -> None:
    builder = Builder()
    builder.entries, builder.leaf = list(log), Log(log).leaf
    for number in moves:
        said = branch.places(builder.entries)
        if number <= len(said):
            builder.add(Leaf(branch.target(builder.entries, str(number))))
            left = {entry.id for entry in said[:number]}
            assert not left & {entry.id for entry in branch.places(builder.entries)}
        builder.user(f"again {number}")
        check(project(builder.entries))
    assert builder.entries[: len(log)] == log


def test_a_place_is_a_number_or_a_label() -> None:
    log = Builder()
    log.user("one")
    answer = log.assistant("a")
    log.user("two")
    label(log, answer, "here")
    assert branch.target(log.entries, "1") == answer
    assert branch.target(log.entries, "2") == ""
    assert branch.target(log.entries, "here") == answer
    assert branch.labels(log.entries) == {"here": answer}
    for nowhere in ("0", "3", "e1", "nowhere", "label-here"):
        with pytest.raises(InputError):
            branch.target(log.entries, nowhere)


def test_the_ends_of_branches_are_told_by_what_was_said_last_on_them() -> None:
    log = Builder()
    log.user("one")
    answer = log.assistant("a")
    log.user("two")
    log.assistant("b")
    log.add(Leaf(answer))
    log.user("other")
    log.assistant("c")
    assert [one.words for one in branch.tips(log.entries)] == ["other", "two"]


def test_a_place_between_calls_and_results_is_refused() -> None:
    log = Builder()
    log.user("go")
    label(log, log.assistant("", ("x",)), "calls")
    with pytest.raises(InputError, match="between calls"):
        branch.target(log.entries, "calls")


def label(log: Builder, target: str, text: str) -> None:
    """A label as the store appends one: beside the tree."""
    seq = len(log.entries) + 1
    fact = Label(target=target, label=text)
    log.entries.append(Entry(session="s", seq=seq, id=f"label-{text}", parent=log.leaf, at=seq, turn="", payload=fact))


@pytest.mark.parametrize("text", ["", "  ", "12", "x" * 61, "a\x07b"])
def test_what_is_no_label(text: str) -> None:
    with pytest.raises(InputError):
        branch.check_label(text)
