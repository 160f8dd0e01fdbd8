"""What a person sees of a turn: each text once, notices apart from answers."""

from __future__ import annotations

import io

from limpet.cli.view import TerminalView
from limpet.types.entry import PlanStep
from limpet.types.envelope import Address, OutboxRow
from limpet.types.event import (
    AimsChanged,
    AnswerReset,
    Event,
    Notice,
    TextDelta,
    ToolBegan,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)

BEGAN = TurnStarted(session="s", turn="t")


def part(text: str, kind: str = "reply") -> OutboxRow:
    address = Address(channel="cli", chat="c")
    kinds = {"reply": "reply", "notice": "notice"}
    assert kind in kinds
    return OutboxRow(
        id=1,
        session="s",
        turn="t",
        address=address,
        text=text,
        state="attempting",
        created=0,
        kind="reply" if kind == "reply" else "notice",
    )


def ended(state: str = "done") -> TurnEnded:
    return TurnEnded(session="s", turn="t", state="cancelled" if state == "cancelled" else "done", text="")


def seen(*shown: Event | OutboxRow, live: bool = True) -> tuple[str, str]:
    """What stands on standard output and on standard error."""
    out, notes = io.StringIO(), io.StringIO()
    view = TerminalView(out, notes, live=live)
    for one in shown:
        if isinstance(one, OutboxRow):
            view.reply(one)
        else:
            view.emit(one)
    return out.getvalue(), notes.getvalue()


def test_a_live_answer_is_not_repeated() -> None:
    assert seen(BEGAN, TextDelta("one "), TextDelta("two"), ended(), part("one two"))[0] == "one two\n"


def test_without_a_live_view_the_delivered_part_is_shown() -> None:
    assert seen(BEGAN, TextDelta("one"), ended(), part("one"), live=False)[0] == "one\n"


def test_two_answers_of_one_turn_are_shown_once_each() -> None:
    more = Notice("[more]")
    shown = seen(BEGAN, TextDelta("first"), more, TextDelta("second"), ended(), part("first"), part("second"))
    assert shown[0] == "first\nsecond\n"


def test_what_was_shown_of_a_stopped_answer_does_not_count_for_the_next() -> None:
    out, notes = seen(BEGAN, TextDelta("one tw"), ended("cancelled"), BEGAN, TextDelta("x"), ended(), part("x"))
    assert out == "one tw\nx\n"
    assert notes == "Stopped.\n"


def test_an_answer_of_somebody_else_is_shown() -> None:
    assert seen(BEGAN, TextDelta("mine"), ended(), part("other"), part("mine"))[0].splitlines() == ["mine", "other"]


def test_text_before_a_tool_is_no_answer() -> None:
    call = ToolBegan(call="a.0", name="exec", arguments="{}")
    done = ToolEnded(call="a.0", name="exec", text="x", is_error=False)
    out, notes = seen(BEGAN, TextDelta("Let me look."), call, done, TextDelta("done"), ended(), part("done"))
    assert out == "Let me look.\ndone\n"
    assert notes == "· exec {}\n"


def test_an_answer_begun_anew_is_shown_whole() -> None:
    shown = seen(BEGAN, TextDelta("half"), AnswerReset("cut off"), TextDelta("whole"), ended(), part("whole"))
    assert shown == ("half\nwhole\n", "[once more: cut off]\n")


def test_a_notice_is_told_once_and_not_on_standard_output() -> None:
    warning = Notice("it failed", level="warning")
    assert seen(BEGAN, warning, ended(), part("it failed", "notice")) == ("", "! it failed\n")
    assert seen(part("I crashed three times", "notice")) == ("", "! I crashed three times\n")


def test_a_plan_is_a_list() -> None:
    steps = (PlanStep("look", "done"), PlanStep("act", "in_progress"))
    _, notes = seen(BEGAN, AimsChanged("s", "sail", steps), ended())
    assert notes == "Goal: sail\n1. [x] look\n2. [>] act\n"
