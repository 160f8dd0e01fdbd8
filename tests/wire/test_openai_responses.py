from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec import structs

from limpet.errors import ContextOverflowError, UpstreamError
from limpet.testing.fakes import Call, FakeResponses, Reply
from limpet.testing.wires import answer_of, ask, collect, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.event import ThinkingDelta
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage
from limpet.types.profile import Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="openai", wire="openai_responses", model="g1", thinking="effort", cache_key=True)
TOOLS = (tool("look"),)


def exchange(script: list[Reply], *requests: Request, profile: Profile = PROFILE):
    async def run():
        async with FakeResponses(script) as server, wire_at(server, profile) as model:
            return [await answer_of(model, request) for request in requests], server.requests

    return asyncio.run(run())


def test_a_fork_names_its_origin_as_the_cache_key():
    request = msgspec.structs.replace(ask(), cache_key="origin")
    _, seen = exchange([Reply(text=("x",))], request)
    assert seen[0].body["prompt_cache_key"] == "origin"


def test_the_request_stores_nothing_and_asks_for_sealed_reasoning():
    _, seen = exchange([Reply(text=("x",))], ask(tools=TOOLS, sampling=Sampling(max_tokens=5, thinking="low")))
    body = seen[0].body
    assert (body["store"], body["include"], body["instructions"]) == (
        False,
        ["reasoning.encrypted_content"],
        "You are Limpet.",
    )
    assert (body["prompt_cache_key"], body["max_output_tokens"]) == ("s1", 16)
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["tools"][0]["strict"] is False


def test_models_that_do_not_reason_are_not_asked_to():
    sampling = Sampling(thinking="low", temperature=0.5)
    _, seen = exchange([Reply(text=("x",))], ask(sampling=sampling), profile=structs.replace(PROFILE, thinking=""))
    assert not {"include", "reasoning"} & set(seen[0].body)
    assert seen[0].body["temperature"] == 0.5


def test_reasoning_and_ids_go_back_as_they_came():
    async def run():
        script = [Reply(thinking="plan", text=("Hm.",), calls=(Call("look", id="c1"),)), Reply(text=("ok",))]
        async with FakeResponses(script) as server, wire_at(server, PROFILE) as model:
            answer = await answer_of(model, ask(tools=TOOLS))
            await answer_of(model, ask(user("Hi"), answer, ToolMessage("c1", "look", (Text("1"),)), tools=TOOLS))
            return answer, server.requests[1].body["input"]

    answer, sent = asyncio.run(run())
    thinking, text, call = answer.content
    assert (thinking.text, text.signature, call) == (
        "plan",
        "msg_0002",
        ToolCall("c1", "look", "{}", signature="fc_0003"),
    )
    assert sent[1] == msgspec.json.decode(thinking.signature)
    assert [item.get("id") for item in sent] == [None, "rs_0001", "msg_0002", "fc_0003", None]


def test_reasoning_of_others_and_reasoning_alone_stay_behind():
    foreign = AssistantMessage((Thinking("hm", "S"), Text("hi", "msg_1")), Producer("openai", "openai_responses", "g2"))
    cut = AssistantMessage((Thinking("", '{"id":"rs_9","type":"reasoning"}'), Text(" ")), PROFILE.producer, "length")
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), foreign, user("b"), cut, user("c")))
    assert [(item["role"], item.get("id")) for item in seen[0].body["input"]] == [
        ("user", None),
        ("assistant", None),
        ("user", None),
        ("user", None),
    ]


def test_ids_need_all_of_their_reasoning():
    unsealed = AssistantMessage((Thinking("plan"), Text("hi", "msg_1")), PROFILE.producer)
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), unsealed, user("b")))
    assert "id" not in seen[0].body["input"][1]


def test_summaries_stream_as_thinking():
    async def run():
        async with FakeResponses([Reply(thinking="abc", text=("x",))]) as server, wire_at(server, PROFILE) as model:
            return await collect(model, ask())

    assert [event.text for event in asyncio.run(run()) if isinstance(event, ThinkingDelta)] == ["a", "b", "c"]


@pytest.mark.parametrize(("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "refusal")])
def test_an_incomplete_answer(reason: str, stop: str):
    (answer,), _ = exchange([Reply(text=("half",), stop=reason)], ask())
    assert (answer.text, answer.stop) == ("half", stop)


def test_a_refusal_is_shown():
    chunks = (
        {"type": "response.refusal.delta", "output_index": 0, "delta": "I cannot."},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    )
    (answer,), _ = exchange([Reply(chunks=chunks)], ask())
    assert (answer.text, answer.stop) == ("I cannot.", "refusal")


SEALED = {"encrypted_content": "E"}
WHOLE = {
    "object": "response",
    "status": "completed",
    "output": [
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "E",
        },
        {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "whole"}]},
        {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
    ],
    "usage": {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 2},
    },
}


@pytest.mark.parametrize(
    "reply", [Reply(body=WHOLE), Reply(chunks=({"type": "response.completed", "response": WHOLE},))]
)
def test_an_answer_that_comes_whole(reply: Reply):
    (answer,), _ = exchange([reply], ask(tools=TOOLS))
    thinking, text, call = answer.content
    assert msgspec.json.decode(thinking.signature) == WHOLE["output"][0]
    assert (thinking.text, text.text, call) == ("s", "whole", ToolCall("c1", "look", '{"a":1}', signature="fc_1"))
    assert answer.usage == Usage(input=5, output=3, cache_read=4, reasoning=2)


def failed(code: str, message: str) -> Reply:
    error = {"code": code, "message": message}
    return Reply(chunks=({"type": "response.failed", "response": {"status": "failed", "error": error}},))


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (failed("server_error", "the model broke"), UpstreamError, "the model broke"),
        (failed("context_length_exceeded", "Your input exceeds"), ContextOverflowError, "Your input"),
        (Reply(chunks=({"type": "error", "code": "server_error", "message": "flat"},)), UpstreamError, "flat"),
        (Reply(chunks=({"type": "error", "error": {"message": "nested"}},)), UpstreamError, "nested"),
        (Reply(chunks=({"type": "response.created"},)), UpstreamError, "empty"),
    ],
)
def test_failures_inside_the_stream(reply: Reply, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        exchange([reply], ask())
