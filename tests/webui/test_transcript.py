"""Entries as messages of the page."""

from __future__ import annotations

from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.entry import AssistantEntry, Compaction, Entry, ModelChange, Payload, ToolResultEntry, ToolStarted
from limpet.types.envelope import Address, Attachment, Beside, Choice, OutboxRow
from limpet.types.message import AssistantMessage, Producer
from limpet.types.tool import Details, text_result
from limpet.types.usage import Usage
from limpet.webui.transcript import SHOWN, Transcript, beside, cut, merged

MODEL = Producer("lab", "openai_chat", "dreamer")


def entry(number: int, payload: Payload, *, at: int = 0, erased: str = "") -> Entry:
    return Entry("s", number, f"e{number}", f"e{number - 1}", at or number, "t", payload, erased=erased)


def row(
    number: int, *, turn: str = "", beside_it: Beside | None = None, kind: str = "reply", key: str = ""
) -> OutboxRow:
    return OutboxRow(
        number,
        "s",
        turn,
        Address("web", "main", "x"),
        "said",
        "sent",
        number,
        kind,
        key=key,
        beside=beside_it or Beside(),
    )


def test_a_call_is_a_card_of_the_answer_that_made_it() -> None:
    transcript = Transcript()
    answer = AssistantMessage((Text("I look"), ToolCall("1", "grep", '{"a":1}')), MODEL, usage=Usage(10, 2, cost=5))
    (item,) = transcript.take([entry(1, AssistantEntry(answer))])
    assert [(one.name, one.state) for one in item.cards] == [("grep", "waiting")]
    (same,) = transcript.take([entry(2, ToolStarted("e1", 0, "grep", "unsafe"), at=100)])
    assert (same.id, same.cards[0].state) == ("e1", "running")
    result = ToolResultEntry("e1", 0, "grep", text_result("found", details=Details(diff="+x")))
    (same,) = transcript.take([entry(3, result, at=350)])
    card = same.cards[0]
    assert (card.state, card.output, card.diff, card.duration) == ("done", "found", "+x", 250)
    assert "dreamer · 10 in, 2 out · $0.0000" in same.meta


def test_thinking_summaries_and_breaks_are_shown_and_what_was_erased_is_not() -> None:
    answer = AssistantMessage((Thinking("hm"), Text("so")), MODEL)
    found = Transcript().take(
        [
            entry(1, AssistantEntry(answer)),
            entry(2, Compaction("the past", "e1")),
            entry(3, ModelChange("lab/other")),
            entry(4, AssistantEntry(AssistantMessage((), MODEL)), erased="00"),
        ]
    )
    assert [one.kind for one in found] == ["agent", "summary", "divider", "agent"]
    assert found[0].thinking == "hm"
    assert found[2].text == "model changed to lab/other"
    assert found[3].blocks[0].bits[0].t == "[erased]"


def test_of_what_was_delivered_only_what_the_log_has_not_is_shown() -> None:
    file = Beside(attachments=(Attachment("0" * 64, "a.pdf", "application/pdf"),))
    assert beside(row(1, turn="t")) is None
    assert beside(row(2, kind="notice", beside_it=Beside(choices=(Choice("Yes", "/approve x"),)))) is None
    assert beside(row(3, kind="notice", key="approval:x")) is None
    command, attached = beside(row(4)), beside(row(5, turn="t", beside_it=file))
    assert command is not None
    assert attached is not None
    assert (command.text, attached.text, attached.files[0].name) == ("said", "", "a.pdf")
    assert [one.id for one in merged([], [attached, command])] == ["o4", "o5"]


def test_long_outputs_are_cut_and_say_so() -> None:
    assert cut("x" * SHOWN) == "x" * SHOWN
    assert cut("x" * (SHOWN + 5)).endswith("[… 5 characters more]")
