"""Faults of services as people reported them, as far as a model alone can show them."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from msgspec import structs

from limpet.errors import BillingError, RequestError, StalledError, UpstreamError
from limpet.llm.arguments import CUT_OFF, NOT_OBJECT, SEVERAL
from limpet.llm.assemble import CUT_BY_LENGTH
from limpet.llm.http import Deadlines
from limpet.llm.retry import Patience, Retrying
from limpet.testing.fakes import Call, FakeAnthropic, FakeOpenAI, Reply, Rules, faults
from limpet.testing.wires import answer_of, ask, collect, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.event import Notice, TextDelta
from limpet.types.message import AssistantMessage, Message, Producer, Sampling, ToolMessage
from limpet.types.profile import Profile

OPENAI = Profile(provider="openai", wire="openai_chat", model="m1")
DEEPSEEK = Profile(provider="deepseek", wire="openai_chat", model="d1", reasoning_echo="always", thinking="toggle")
CLAUDE_A = Profile(provider="anthropic", wire="anthropic", model="a")
CLAUDE_B = structs.replace(CLAUDE_A, model="b")
MODEL_WITH_TEXT_CALLS = structs.replace(OPENAI, text_calls=("minimax", "json"), think_tags=True)
COMMAND = b'{"type":"object","properties":{"command":{"type":"string"}}}'
TOOLS = (*tuple(tool(name) for name in ("status", "calc", "write_file")), tool("exec", parameters=COMMAND))


def results(answer: AssistantMessage) -> list[ToolMessage]:
    return [ToolMessage(call.id, call.name, (Text(call.fault or "fine"),), bool(call.fault)) for call in answer.calls]


def turn(reply: Reply, *, profile: Profile = OPENAI) -> tuple[AssistantMessage, list[dict]]:
    """The answer that `reply` makes, and how it stands in the next request, which a strict server takes."""

    async def run():
        async with FakeOpenAI([reply, Reply(text=("done",))]) as server, wire_at(server, profile) as model:
            answer = await answer_of(model, ask(tools=TOOLS))
            await answer_of(model, ask(user("Hi"), answer, *results(answer), user("next"), tools=TOOLS))
            assert server.refusals == []
            return answer, server.requests[1].body["messages"]

    return asyncio.run(run())


@pytest.mark.parametrize("arguments", ["", "null", "  ", None])
def test_c01_no_arguments_are_an_empty_object(arguments: str | None):
    answer, sent = turn(faults.odd_arguments("status", arguments))
    assert answer.calls == (ToolCall("call_a", "status", "{}"),)
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_c01_json_null_is_an_empty_object():
    assert turn(faults.null_arguments("status"))[0].calls == (ToolCall("call_a", "status", "{}"),)


@pytest.mark.parametrize("arguments", ["[]", "12"])
def test_c01_what_is_no_object_is_a_fault(arguments: str):
    answer, sent = turn(faults.odd_arguments("status", arguments))
    assert answer.calls == (ToolCall("call_a", "status", "{}", fault=NOT_OBJECT),)
    assert sent[3]["content"] == "arguments must be an object"


def test_c02_blank_ids_and_names_in_later_pieces():
    answer, _ = turn(faults.blank_later_pieces("calc", '{"expr":"2', '+2"', "}"))
    assert answer.calls == (ToolCall("call_8", "calc", '{"expr":"2+2"}'),)


def test_c02_arguments_as_an_object_are_replayed_as_text():
    answer, sent = turn(faults.odd_arguments("exec", {"command": "echo ok"}))
    assert json.loads(answer.calls[0].arguments) == {"command": "echo ok"}
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"command":"echo ok"}'


def test_c03_one_index_with_three_ids_is_three_calls():
    calls = [
        Call("write_file", f'{{"path":"{name}.txt"}}', id=id) for id, name in (("x1", "a"), ("x2", "b"), ("x3", "c"))
    ]
    answer, sent = turn(faults.one_index(*calls))
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        (call.id, "write_file", call.arguments) for call in calls
    ]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ["x1", "x2", "x3"]


def test_c03_two_objects_run_together_are_a_fault():
    answer, _ = turn(faults.run_together("exec"))
    assert answer.calls == (ToolCall("call_a", "exec", "{}", fault=SEVERAL),)


@pytest.mark.parametrize(("stop", "fault"), [("length", CUT_BY_LENGTH), ("tool_calls", CUT_OFF)])
def test_c04_a_call_cut_off_is_never_run(stop: str, fault: str):
    answer, sent = turn(faults.cut_off("write_file", '{"path":"a.txt","content":"line1\\nli', stop=stop))
    assert [(call.arguments, call.fault) for call in answer.calls] == [("{}", fault)]
    assert "cut off" in sent[3]["content"]


def test_c06_deepseek_gets_its_reasoning_back_and_an_empty_one_for_foreign_turns():
    foreign = AssistantMessage((Thinking("secret", "S"), ToolCall("f1", "calc", "{}")), Producer("x", "anthropic", "c"))
    first: list[Message] = [user("old"), foreign, *results(foreign), user("new")]

    async def run():
        script = [Reply(thinking="plan", calls=(Call("calc"),)), Reply(text=("done",))]
        async with FakeOpenAI(script, rules=Rules(deepseek=True)) as server, wire_at(server, DEEPSEEK) as model:
            answer = await answer_of(model, ask(*first, tools=TOOLS))
        stored = msgspec.json.decode(msgspec.json.encode(answer), type=AssistantMessage)  # a restart
        async with FakeOpenAI(script[1:], rules=Rules(deepseek=True)) as server, wire_at(server, DEEPSEEK) as model:
            off = Sampling(thinking="off")
            await answer_of(model, ask(*first, stored, *results(stored), user("more"), tools=TOOLS, sampling=off))
            return server.requests[0].body

    body = asyncio.run(run())
    assert [m["reasoning_content"] for m in body["messages"] if m["role"] == "assistant"] == ["", "plan"]
    assert body["thinking"] == {"type": "disabled"}


def test_c06_others_get_no_reasoning_at_all():
    answer, sent = turn(Reply(thinking="plan", calls=(Call("calc"),)))
    assert answer.content[0] == Thinking("plan")
    assert "reasoning_content" not in sent[2]


MINIMAX = (
    '<minimax:tool_call><invoke name="exec"><parameter name="command">echo a &amp;&amp; echo b</parameter>'
    "</invoke></minimax:tool_call>"
)
UNKNOWN = '{"name":"nobody","arguments":{"a":1}}'
FENCED = f"Do it so:\n```\n{MINIMAX}\n```\nThat is all."
WRITTEN = [
    (MINIMAX, "", ["echo a && echo b"]),
    ('{"name":"exec","arguments":{"command":"echo hi"}}', "", ["echo hi"]),
    (UNKNOWN, UNKNOWN, []),
    (FENCED, FENCED, []),
    ("<think>long plan<final>Answer 42</final>", "Answer 42", []),
    ("<think>x</think>Hello", "Hello", []),
]


@pytest.mark.parametrize("size", [1, 5, 1_000])
@pytest.mark.parametrize(("text", "seen", "commands"), WRITTEN)
def test_c08_calls_and_reasoning_written_as_text(text: str, seen: str, commands: list[str], size: int):
    pieces = tuple(text[at : at + size] for at in range(0, len(text), size))

    async def run():
        async with FakeOpenAI([Reply(text=pieces)]) as server, wire_at(server, MODEL_WITH_TEXT_CALLS) as model:
            return await collect(model, ask(tools=TOOLS))

    *events, done = asyncio.run(run())
    assert [json.loads(call.arguments)["command"] for call in done.message.calls] == commands
    assert done.message.text == seen
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == seen


def test_c08_without_the_profile_text_is_text():
    answer, _ = turn(Reply(text=(MINIMAX,)))
    assert (answer.text, answer.calls) == (MINIMAX, ())


def test_c10_reasoning_goes_back_only_to_the_model_that_made_it():
    history: list[Message] = [user("one")]

    async def run():
        thinking = Reply(thinking="", signature="S1", calls=(Call("calc"),))
        script = [thinking, *(Reply(text=(text,)) for text in ("two", "three", "four"))]
        async with FakeAnthropic(script) as server:
            for n, profile in enumerate((CLAUDE_A, CLAUDE_A, CLAUDE_B, CLAUDE_A)):
                async with wire_at(server, profile) as model:
                    answer = await answer_of(model, ask(*history, tools=TOOLS))
                history.extend([answer, *results(answer)] if answer.calls else [answer, user(f"next {n}")])
            assert server.refusals == []
            return [seen.body["messages"][1]["content"] for seen in server.requests[1:]]

    second, third, fourth = asyncio.run(run())
    block = {"type": "thinking", "thinking": "", "signature": "S1"}
    assert second[0] == fourth[0] == block
    assert [found["type"] for found in third] == ["tool_use"]


@pytest.mark.parametrize("reply", [faults.error_in_200(), faults.no_choices(), faults.error_in_stream("a", "b")])
def test_c14_a_failed_200_is_asked_again_once(reply: Reply):
    async def run():
        async with FakeOpenAI([reply, Reply(text=("fine",))]) as server, wire_at(server, OPENAI) as model:
            return await collect(Retrying(model, patience=Patience(pause=0)), ask())

    events = asyncio.run(run())
    assert events[-1].message.text == "fine"
    assert any(isinstance(event, Notice) for event in events)


@pytest.mark.parametrize("reply", [faults.error_in_200(), faults.no_choices(), faults.error_in_stream("a", "b")])
def test_c14_a_failed_200_is_never_an_answer(reply: Reply):
    with pytest.raises(UpstreamError):
        turn(reply)


def test_c14_an_empty_answer_is_an_answer_without_content():
    async def run():
        async with FakeOpenAI([faults.empty()]) as server, wire_at(server, OPENAI) as model:
            return await answer_of(model, ask())

    assert asyncio.run(run()).content == ()


def test_c14_no_credit_is_said_in_the_words_of_the_provider():
    with pytest.raises(BillingError, match="no credits"):
        turn(faults.no_credits())


def test_c14_an_answer_of_calls_only_is_whole():
    answer, sent = turn(Reply(calls=(Call("calc"),)))
    assert (answer.stop, answer.text) == ("tool_calls", "")
    assert sent[2]["content"] is None


@pytest.mark.parametrize("reply", [faults.headers_only(), faults.comments_only(every=0.02)])
def test_c15_a_stall_is_given_up_and_asked_again_once(reply: Reply):
    async def run(script: list[Reply]):
        deadlines = Deadlines(idle=0.15)
        async with FakeOpenAI(script) as server, wire_at(server, OPENAI, deadlines=deadlines) as model:
            return await answer_of(Retrying(model, patience=Patience(pause=0)), ask())

    assert asyncio.run(run([reply, Reply(text=("fine",))])).text == "fine"
    with pytest.raises(StalledError, match="no content"):
        asyncio.run(run([reply, reply]))


def test_c21d_text_of_the_user_is_no_overflow():
    said = "Context overflow: prompt too large"
    refusal = Reply(status=400, body={"error": {"message": f"bad message: {said}", "type": "invalid_request_error"}})
    with pytest.raises(RequestError):
        turn(refusal)
