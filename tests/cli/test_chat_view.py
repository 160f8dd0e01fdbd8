"""What a full terminal shows of a turn, event by event."""

from __future__ import annotations

import io
import re

from limpet.cli.chat_screen import Screen
from limpet.cli.chat_view import ChatView
from limpet.types.entry import PlanStep
from limpet.types.envelope import Address, OutboxRow
from limpet.types.event import (
    AimsChanged,
    AnswerReset,
    Event,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolBegan,
    ToolEnded,
    TurnEnded,
    TurnStarted,
)

BEGAN, ENDED = TurnStarted("s", "t"), TurnEnded("s", "t", "done", "")
RESULT = ToolEnded(call="a.0", name="grep", text="one\ntwo\nthree", is_error=False, duration=1200)


class Seen:
    """A view and all it has written."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        self.view = ChatView(Screen(self._stream, size=lambda: (60, 20)))

    def after(self, *shown: Event | OutboxRow) -> str:
        for one in shown:
            if isinstance(one, OutboxRow):
                self.view.reply(one)
            else:
                self.view.emit(one)
        return self.text

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[\d;]*[mKJA]", "", self._stream.getvalue())


def part(text: str, *, turn: str = "t") -> OutboxRow:
    address = Address(channel="cli", chat="c")
    return OutboxRow(id=1, session="s", turn=turn, address=address, text=text, state="attempting", created=0)


def test_an_answer_is_shown_once() -> None:
    assert Seen().after(BEGAN, TextDelta("one "), TextDelta("*two*"), ENDED, part("one *two*")) == "\none two\n"


def test_an_answer_of_somebody_else_is_shown_too() -> None:
    assert Seen().after(BEGAN, TextDelta("mine"), ENDED, part("other"), part("mine")) == "\nmine\n\nother\n"


def test_the_reply_of_a_command_is_laid_out_already() -> None:
    assert Seen().after(part("total  *1*\n 2  <b>", turn="")) == "total  *1*\n 2  <b>\n"


def test_an_answer_begun_anew_is_shown_whole() -> None:
    shown = Seen().after(BEGAN, TextDelta("half"), AnswerReset("cut off"), TextDelta("whole"), ENDED, part("whole"))
    assert shown == "[once more: cut off]\n\nwhole\n"


def test_results_are_folded_and_unfolded() -> None:
    seen = Seen()
    folded = seen.after(BEGAN, ToolBegan("a.0", "grep", '{"pattern": "o"}'), RESULT)
    assert folded == "· grep o (1.2 s)\n  3 lines, ctrl-o shows them\n"
    seen.view.unfold()
    assert seen.text.endswith("· grep o\n  one\n  two\n  three\n")
    assert seen.after(RESULT).endswith("· grep (1.2 s)\n  one\n  two\n  three\n")


def test_a_failure_says_why() -> None:
    failed = ToolEnded(call="a.0", name="exec", text="no such file", is_error=True)
    assert Seen().after(BEGAN, failed) == "✗ exec: no such file\n"


def test_a_change_shows_its_diff_instead_of_its_result() -> None:
    seen = Seen()
    seen.view.changed = lambda call: "-old\n+new" if call == "a.0" else ""
    assert seen.after(BEGAN, RESULT) == "· grep (1.2 s)\n  -old\n  +new\n"


def test_thoughts_are_folded_into_a_line() -> None:
    shown = Seen().after(BEGAN, ThinkingDelta("I ponder "), ThinkingDelta("this"), TextDelta("Yes."), ENDED)
    assert shown == "∴ thought in 3 words, ctrl-o shows them\n\nYes.\n"


def test_a_plan_is_a_list_and_a_notice_is_told_once() -> None:
    steps = (PlanStep("look", "done"), PlanStep("act", "in_progress"))
    notice = OutboxRow(
        id=1, session="s", turn="t", address=Address("cli", "c"), text="low", state="sent", created=0, kind="notice"
    )
    shown = Seen().after(BEGAN, AimsChanged("s", "sail", steps), Notice("low", level="warning"), ENDED, notice)
    assert shown == "Goal: sail\n1. [x] look\n2. [>] act\n! low\n"
