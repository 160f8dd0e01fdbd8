from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.llm.arguments import SEVERAL
from limpet.llm.assemble import CUT_BY_LENGTH, Assembler, cost_of
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.event import AnswerReset, TextDelta
from limpet.types.profile import Price, Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="p", wire="openai_chat", model="m")
Piece = tuple[int | None, str, str, object]


def calls(*pieces: Piece, stop: str = "tool_calls") -> list[ToolCall]:
    assembler = Assembler(PROFILE)
    for index, id, name, arguments in pieces:
        assembler.call(index=index, id=id, name=name, arguments=arguments)
    _, message = assembler.finish(stop, Usage())
    return list(message.calls)


def test_later_pieces_need_neither_id_nor_name():
    made = calls((0, "call_8", "calc", '{"expr":"2'), (0, "", "", '+2"'), (0, "", "", "}"))
    assert made == [ToolCall("call_8", "calc", '{"expr":"2+2"}')]


def test_one_index_with_several_ids_is_several_calls():
    made = calls(*((0, f"x{n}", "write_file", f'{{"path":"{n}"}}') for n in (1, 2, 3)))
    assert [(call.id, call.name, call.arguments) for call in made] == [
        (f"x{n}", "write_file", f'{{"path":"{n}"}}') for n in (1, 2, 3)
    ]


def test_one_index_without_ids_begins_anew_with_a_name_after_complete_arguments():
    made = calls((0, "", "a", '{"n":1}'), (0, "", "a", '{"n":2}'), (0, "", "b", "{}"))
    assert [(call.name, call.arguments) for call in made] == [("a", '{"n":1}'), ("a", '{"n":2}'), ("b", "{}")]
    assert len({call.id for call in made}) == 3


def test_a_repeated_name_continues_incomplete_arguments():
    assert [call.arguments for call in calls((0, "i", "a", '{"n"'), (0, "i", "a", ":1}"))] == ['{"n":1}']


def test_pieces_without_an_index_go_by_id():
    made = calls((None, "a", "t", '{"n":'), (None, "b", "t", "{}"), (None, "a", "", "1}"))
    assert [(call.id, call.arguments) for call in made] == [("a", '{"n":1}'), ("b", "{}")]


def test_equal_ids_become_different_ones():
    made = calls(*((index, "a", "t", "{}") for index in range(3)))
    assert [call.id for call in made] == ["a", "a_2", "a_3"]


def test_arguments_may_come_as_an_object():
    assert calls((0, "a", "exec", {"command": "echo ok"}))[0].arguments == '{"command":"echo ok"}'


def test_two_objects_in_one_call_are_a_fault():
    assert calls((0, "a", "t", '{"p":1}{"p":2}'))[0].fault == SEVERAL


def test_every_call_of_an_answer_cut_by_length_is_refused():
    made = calls((0, "a", "t", '{"n":1}'), (1, "b", "t", '{"n'), stop="length")
    assert [call.fault for call in made] == [CUT_BY_LENGTH] * 2
    assert [call.arguments for call in made] == ['{"n":1}', "{}"]


@pytest.mark.parametrize(("stop", "with_call", "ends"), [("stop", True, "tool_calls"), ("tool_calls", False, "stop")])
def test_the_stop_reason_agrees_with_the_content(stop: str, with_call: bool, ends: str):
    assembler = Assembler(PROFILE)
    assembler.text("x")
    if with_call:
        assembler.call(index=0, id="a", name="t", arguments="{}")
    assert assembler.finish(stop, Usage())[1].stop == ends


def test_blank_text_beside_calls_is_dropped():
    assembler = Assembler(PROFILE)
    assembler.text("\n")
    assembler.call(index=0, id="a", name="t", arguments=None)
    assert assembler.finish("tool_calls", Usage())[1].content == (ToolCall("a", "t", "{}"),)


def test_halves_of_a_character_meet_across_pieces():
    assembler = Assembler(PROFILE)
    events = [*assembler.text("a\ud83d"), *assembler.text("\ude00b")]
    assert events == [TextDelta("a"), TextDelta("\U0001f600b")]
    assert assembler.finish("stop", Usage())[1].text == "a\U0001f600b"


def test_reasoning_with_signature_keeps_its_place_also_when_empty():
    assembler = Assembler(PROFILE)
    assembler.thinking("", begin=True)
    assembler.thinking("", signature="S1")
    assembler.text("hi")
    assert assembler.finish("stop", Usage())[1].content == (Thinking("", "S1"), Text("hi"))


def test_an_end_of_reasoning_without_a_beginning_takes_the_text_back():
    assembler = Assembler(msgspec.structs.replace(PROFILE, think_tags=True))
    events = [*assembler.text("plan "), *assembler.text("more</think>Hi")]
    last, message = assembler.finish("stop", Usage())
    assert any(isinstance(event, AnswerReset) for event in events + last)
    assert message.content == (Thinking("plan more"), Text("Hi"))


ARGUMENTS = ["{}", '{"a":', "1}", "null", "[]", "\ud83d", '"x']
PIECES = st.tuples(
    st.none() | st.integers(0, 2),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "t", "u"]),
    st.none() | st.sampled_from(ARGUMENTS),
)


@given(st.lists(PIECES, max_size=8))
def test_whatever_comes_calls_are_well_formed(pieces: list[Piece]):
    made = calls(*pieces)
    assert len({call.id for call in made}) == len(made)
    for call in made:
        assert isinstance(msgspec.json.decode(call.arguments), dict)
        assert call.name
        msgspec.json.encode(call)


def test_cost_rounds_up_and_is_none_without_a_price():
    usage = Usage(input=1, output=1)
    priced = msgspec.structs.replace(PROFILE, price=Price(input=1_000_000, output=1_500_000))
    assert cost_of(usage, priced).cost == 3
    assert cost_of(usage, PROFILE).cost is None
    assert cost_of(usage, msgspec.structs.replace(PROFILE, local=True)).cost == 0
