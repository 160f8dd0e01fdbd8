"""The projection keeps what providers demand, whatever the log holds."""

from __future__ import annotations

import pytest
from hypothesis import given

from limpet.session.log import Log
from limpet.session.project import Projection, project
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.entry import Compaction, Entry, Leaf, Prune
from limpet.types.message import AssistantMessage, Message, ToolMessage, UserMessage
from tests.session.logs import A, B, Builder, any_log


def check(messages: tuple[Message, ...]) -> None:
    """What a strict provider checks of a request."""
    seen: set[str] = set()
    expected: list[str] = []
    previous: Message | None = None
    for message in messages:
        match message:
            case ToolMessage():
                assert expected
                assert message.call_id == expected.pop(0), "results follow their calls in order"
            case AssistantMessage():
                assert not expected
                assert isinstance(previous, UserMessage | ToolMessage)
                expected = [call.id for call in message.calls]
                assert not seen & set(expected)
                assert all(expected), "an id is never empty"
                assert len(set(expected)) == len(expected)
                seen |= set(expected)
                assert message.content
            case UserMessage():
                assert not expected
                assert not isinstance(previous, UserMessage)
                assert message.content or message.runtime
        if not isinstance(message, AssistantMessage):
            assert all(block.text.strip() for block in message.content if isinstance(block, Text))
        previous = message
    assert not expected, "every call has its result"
    assert not messages or isinstance(messages[0], UserMessage)


@given(any_log())
def test_any_log_projects_to_what_providers_accept(log: list[Entry]) -> None:
    check(project(log))


@given(any_log())
def test_entry_by_entry_gives_the_same_as_all_at_once(log: list[Entry]) -> None:
    projection = Projection()
    for length, entry in enumerate(log, start=1):
        projection.extend((entry,))
        assert projection.messages() == project(log[:length])


@given(any_log())
def test_messages_once_closed_stay_the_same_objects(log: list[Entry]) -> None:
    projection = Projection()
    before: tuple[Message, ...] = ()
    for entry in log:
        projection.extend((entry,))
        after = projection.messages()
        if not isinstance(entry.payload, Leaf | Compaction):
            closed = [message for message in before[:-1] if not isinstance(message, ToolMessage)]
            assert all(any(message is kept for kept in after) for message in closed)
        before = after


def turns(count: int) -> Builder:
    """Turns of four entries each, with a tool call."""
    log = Builder()
    for number in range(count):
        log.user(f"question {number}", runtime="<r>")
        log.result(log.assistant("", (f"c{number}",)), 0)
        log.assistant("answer")
    return log


@pytest.mark.parametrize("count", [5, 500])
def test_a_turn_costs_as_many_folds_after_2000_entries_as_after_20(count: int) -> None:
    built = turns(count)
    log = Log(built.entries)
    before = log.folds
    more = turns(count + 1).entries[count * 4 :]
    for entry in more:
        log.extend([entry])
        log.messages()
    assert log.folds - before == len(more) == 4


def test_however_often_a_log_was_shortened_it_is_computed_once() -> None:
    log = turns(1)
    for number in range(50):
        log.result(log.assistant("", (f"d{number}",)), 0, "x" * 9_000)
        log.add(Prune((log.leaf,), how="soft"))
    assert Log(log.entries).folds == len(log.entries)


def test_results_come_in_the_order_of_the_calls() -> None:
    log = Builder()
    log.user()
    answer = log.assistant("", ("x", "y"))
    log.result(answer, 1, "second")
    log.result(answer, 0, "first")
    texts = [message.content[0] for message in project(log.entries)[2:]]
    assert texts == [Text("first"), Text("second")]


def test_a_missing_result_is_said_to_be_unknown() -> None:
    log = Builder()
    log.user()
    answer = log.assistant("", ("x", "y"))
    log.result(answer, 0)
    log.user("go on")
    unknown = project(log.entries)[3]
    assert isinstance(unknown, ToolMessage)
    assert unknown.is_error
    assert "outcome is unknown" in str(unknown.content)


def test_neighbouring_user_entries_merge_and_keep_each_runtime_block() -> None:
    log = Builder()
    log.user("one", runtime="<r1>")
    log.user("two", runtime="<r2>")
    assert project(log.entries) == (UserMessage((Text("one"), Text("<r1>"), Text("two")), runtime="<r2>"),)


def test_thinking_stays_with_the_answer_it_belongs_to() -> None:
    log = Builder()
    log.user()
    log.assistant("hello", thinking="plan")
    assert isinstance(project(log.entries)[1].content[0], Thinking)


def test_answers_of_two_models_in_a_row_merge_without_the_thinking_of_the_first() -> None:
    log = Builder()
    log.user()
    log.assistant("one", producer=A, thinking="a")
    log.assistant("two", producer=B, thinking="b")
    (merged,) = project(log.entries)[1:]
    assert merged == AssistantMessage((Text("one"), Thinking("b", signature="s"), Text("two")), producer=B)


def test_equal_ids_of_different_answers_are_made_unique() -> None:
    log = Builder()
    for _ in range(3):
        log.user()
        answer = log.assistant("", ("call_1",))
        log.result(answer, 0)
    calls = [b.id for m in project(log.entries) for b in m.content if isinstance(b, ToolCall)]
    assert calls == ["call_1", "call_1_2", "call_1_3"]


def test_a_moved_leaf_leaves_the_other_branch_out() -> None:
    log = Builder()
    log.user("one")
    keep = log.assistant("first")
    log.user("two")
    log.assistant("second")
    log.add(Leaf(keep))
    log.user("three")
    texts = [block.text for message in project(log.entries) for block in message.content if isinstance(block, Text)]
    assert texts == ["one", "first", "three"]


def test_a_compaction_stands_for_what_was_before_its_first_kept_entry() -> None:
    log = Builder()
    log.user("one")
    log.assistant("first")
    kept = log.user("two")
    log.assistant("second")
    log.add(Compaction(summary="one was said", first_kept=kept))
    log.user("three")
    texts = [block.text for message in project(log.entries) for block in message.content if isinstance(block, Text)]
    assert texts == ["Summary of the conversation so far:\n\none was said", "two", "second", "three"]
