from __future__ import annotations

import asyncio
import json

import pytest
from msgspec import structs

from limpet.errors import (
    BillingError,
    ContextOverflowError,
    CredentialError,
    RateLimitError,
    RequestError,
    UnreachableError,
    UpstreamError,
)
from limpet.llm.http import Http
from limpet.llm.wire.openai_chat import OpenAIChat
from limpet.testing.fakes import Call, FakeOpenAI, Reply, Rules
from limpet.testing.wires import MemoryBlobs, answer_of, ask, collect, tool, user, wire_at
from limpet.types.content import Image, Opaque, Text, Thinking, ToolCall
from limpet.types.event import TextDelta
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage, UserMessage
from limpet.types.profile import Price, Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="openai", wire="openai_chat", model="m1", images=True)
FOREIGN = Producer(provider="anthropic", wire="anthropic", model="c1")


def exchange(
    script: list[Reply], *requests: Request, profile: Profile = PROFILE, rules: Rules | None = None, blobs=None
):
    """Answers to `requests` in turn, and what the fake saw."""

    async def run():
        async with FakeOpenAI(script, rules=rules) as server, wire_at(server, profile, blobs=blobs) as model:
            return [await answer_of(model, request) for request in requests], server.requests

    return asyncio.run(run())


def test_text_streams_in_its_pieces_and_ends_with_the_whole():
    async def run():
        async with FakeOpenAI([Reply(text=("Hel", "lo"))]) as server, wire_at(server, PROFILE) as model:
            return await collect(model, ask())

    *deltas, done = asyncio.run(run())
    assert deltas == [TextDelta("Hel"), TextDelta("lo")]
    assert done.message.text == "Hello"
    assert done.message.stop == "stop"
    assert done.message.producer == PROFILE.producer


def test_usage_counts_cached_tokens_once_and_costs_micro_dollars():
    profile = structs.replace(PROFILE, price=Price(input=2_000_000, output=8_000_000, cache_read=200_000))
    (answer,), _ = exchange([Reply(text=("x",), usage=(1000, 10), cached=600)], ask(), profile=profile)
    assert answer.usage == Usage(input=400, output=10, cache_read=600, cost=400 * 2 + 10 * 8 + 120)


def test_a_tool_turn_is_replayed_so_that_a_strict_server_takes_it():
    call = Call("list_dir", '{"path":"."}')
    tools = [tool("list_dir")]
    first = user("List", runtime="[now 10:00]")

    async def run():
        async with (
            FakeOpenAI([Reply(calls=(call,)), Reply(text=("done",))]) as server,
            wire_at(server, PROFILE) as model,
        ):
            answer = await answer_of(model, ask(first, tools=tools))
            result = ToolMessage(call_id=answer.calls[0].id, name="list_dir", content=(Text("a.txt"),))
            await answer_of(model, ask(first, answer, result, tools=tools))
            return server.requests[1].body

    body = asyncio.run(run())
    assert body["messages"][1]["content"] == "List\n\n[now 10:00]"
    assert body["messages"][2]["content"] is None
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "list_dir", "arguments": '{"path":"."}'}
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"}


def test_tool_choice_none_keeps_the_tools():
    _, seen = exchange([Reply(text=("x",))], ask(tools=[tool("a")], tool_choice="none"))
    assert seen[0].body["tool_choice"] == "none"
    assert len(seen[0].body["tools"]) == 1


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        (PROFILE, "max_tokens"),
        (structs.replace(PROFILE, token_parameter="max_completion_tokens"), "max_completion_tokens"),
    ],
)
def test_the_token_limit_goes_by_the_name_the_profile_says(profile: Profile, field: str):
    _, seen = exchange([Reply(text=("x",))], ask(sampling=Sampling(max_tokens=99, temperature=0.3)), profile=profile)
    assert seen[0].body[field] == 99
    assert seen[0].body["temperature"] == 0.3


@pytest.mark.parametrize(
    ("style", "with_tools", "level", "field", "value"),
    [
        ("effort", "free", "low", "reasoning_effort", "low"),
        ("effort", "free", "off", "reasoning_effort", "none"),
        ("effort", "none", "high", "reasoning_effort", "none"),
        ("effort", "none", None, "reasoning_effort", "none"),
        ("effort", "absent", "high", "reasoning_effort", None),
        ("toggle", "free", "off", "thinking", {"type": "disabled"}),
        ("openrouter", "free", "high", "reasoning", {"effort": "high"}),
        ("template", "free", "off", "chat_template_kwargs", {"enable_thinking": False}),
        ("", "free", "high", "reasoning_effort", None),
    ],
)
def test_how_reasoning_is_asked_for_when_tools_are_offered(style, with_tools, level, field, value):
    profile = structs.replace(PROFILE, thinking=style, effort_with_tools=with_tools)
    request = ask(tools=[tool("t")], sampling=Sampling(thinking=level))
    _, seen = exchange([Reply(text=("x",))], request, profile=profile)
    assert seen[0].body.get(field) == value


def test_pictures_go_along_as_data_and_a_missing_one_becomes_a_note():
    blobs = MemoryBlobs()
    blob = asyncio.run(blobs.put(b"png"))
    shown = Image(blob=blob, mime="image/png")
    lost = Image(blob="0" * 64, mime="image/png", name="cat.png", width=2, height=3)
    message = UserMessage(content=(Text("look"), shown, lost))
    _, seen = exchange([Reply(text=("x",))], ask(message), blobs=blobs)
    parts = seen[0].body["messages"][1]["content"]
    assert parts[1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
    assert parts[2]["text"] == "[image: cat.png, 2x3; no longer stored]"


def test_pictures_of_tool_results_follow_the_batch_in_one_user_message():
    blobs = MemoryBlobs()
    blob = asyncio.run(blobs.put(b"png"))
    calls = (ToolCall("c1", "shot", "{}"), ToolCall("c2", "shot", "{}"))
    answer = AssistantMessage(content=calls, producer=FOREIGN, stop="tool_calls")
    results = [ToolMessage(call.id, "shot", (Image(blob=blob, mime="image/png"),)) for call in calls]
    _, seen = exchange([Reply(text=("x",))], ask(user("go"), answer, *results, tools=[tool("shot")]), blobs=blobs)
    roles = [message["role"] for message in seen[0].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [part["type"] for part in seen[0].body["messages"][-1]["content"]].count("image_url") == 2


def test_blank_answers_and_unknown_blocks_are_not_sent():
    blank = AssistantMessage(content=(Thinking("hm"), Text("  ")), producer=FOREIGN)
    odd = AssistantMessage(content=(Opaque(b'{"type":"new"}'), Text("seen")), producer=FOREIGN)
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), blank, user("b"), odd, user("c")))
    assert [message["content"] for message in seen[0].body["messages"][1:]] == ["a", "b", "seen", "c"]


def test_lone_surrogates_in_the_history_do_not_break_the_request():
    _, seen = exchange([Reply(text=("x",))], ask(user("bad \ud83d half, good \ud83d\ude00")))
    assert seen[0].body["messages"][1]["content"] == "bad \ufffd half, good \U0001f600"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(status=402, body={"error": {"message": "no credits"}}), BillingError, "no credits"),
        (
            Reply(status=429, body={"error": {"message": "slow down"}}, headers={"Retry-After": "7"}),
            RateLimitError,
            "slow",
        ),
        (Reply(status=500, body="<html>oops</html>"), UpstreamError, "HTML"),
        (Reply(body="<html>login</html>"), UpstreamError, "HTML instead of JSON"),
        (Reply(status=404, body={"error": {"message": "no such model"}}), RequestError, "no such model"),
        (
            Reply(status=307, headers={"Location": "https://x.test/"}, body=""),
            RequestError,
            "redirects to https://x.test/",
        ),
        (Reply(raw=("data: {broken\n\n",)), UpstreamError, "not readable"),
        (Reply(text=("a", "b"), cut_after=2), UpstreamError, "cut off"),
        (Reply(raw=("data: [DONE]\n\n",)), UpstreamError, "no choices"),
    ],
)
def test_faults_become_the_error_that_says_what_to_do(reply: Reply, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        exchange([reply], ask())


def test_a_wrong_key_gives_the_words_of_the_provider():
    async def run():
        async with FakeOpenAI([]) as server:
            http = Http("openai")
            model = OpenAIChat(structs.replace(PROFILE, base_url=server.base_url), key="nope", http=http)
            try:
                await answer_of(model, ask())
            finally:
                await model.close()

    with pytest.raises(CredentialError, match="Incorrect API key") as caught:
        asyncio.run(run())
    assert caught.value.status == 401


def test_no_server_names_the_address():
    async def run():
        model = OpenAIChat(structs.replace(PROFILE, base_url="http://127.0.0.1:1/v1"), key="", http=Http("openai"))
        try:
            await answer_of(model, ask())
        finally:
            await model.close()

    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        asyncio.run(run())


def test_overflow_is_told_by_code():
    with pytest.raises(ContextOverflowError):
        exchange([], ask(user("x" * 500)), rules=Rules(max_characters=400))


def test_a_server_that_does_not_stream_is_understood():
    body = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    (answer,), _ = exchange([Reply(body=body)], ask())
    assert (answer.text, answer.usage.input) == ("whole", 3)


def test_the_body_of_the_next_request_begins_with_the_bytes_of_this_one():
    messages = [user("one")]
    script = [Reply(text=(f"answer {n}",)) for n in range(3)]

    async def run():
        async with FakeOpenAI(script) as server, wire_at(server, PROFILE) as model:
            for n in range(3):
                messages.append(await answer_of(model, ask(*messages)))
                messages.append(user(f"next {n}"))
            return [seen.raw for seen in server.requests]

    first, second, third = asyncio.run(run())
    end = first.index(b'],"stream"')
    assert second.startswith(first[:end])
    assert third.startswith(second[: second.index(b'],"stream"')])
    assert len(json.loads(third)["messages"]) == 6


def test_a_service_that_wants_marks_gets_them_at_its_instructions_and_the_newest_message():
    profile = structs.replace(PROFILE, cache_marks=True, cache_ttl=300)
    rules = Rules(cache_marks=True)
    script = [Reply(calls=(Call("t", "{}", id="u1"), Call("t", "{}", id="u2"))), Reply(text=("x",))]
    first = structs.replace(ask(user("one"), tools=[tool("t")]), rhythm="quick")

    async def run():
        async with FakeOpenAI(script, rules=rules) as server, wire_at(server, profile) as model:
            answer = await answer_of(model, first)
            results = [ToolMessage(call_id=name, name="t", content=(Text("ok"),)) for name in ("u1", "u2")]
            await answer_of(model, structs.replace(first, messages=(*first.messages, answer, *results)))
            return [seen.body["messages"] for seen in server.requests]

    mark = {"cache_control": {"type": "ephemeral"}}
    one, two = asyncio.run(run())
    assert [message["content"] for message in one] == [
        [{"type": "text", "text": "You are Limpet.", **mark}],
        [{"type": "text", "text": "one", **mark}],
    ]
    assert [message["content"] for message in two[1:]] == ["one", None, "ok", [{"type": "text", "text": "ok", **mark}]]


def test_a_picture_leaves_the_mark_to_the_text_beside_it():
    profile = structs.replace(PROFILE, cache_marks=True, cache_ttl=3600)
    blobs = MemoryBlobs()
    message = UserMessage((Text("look"), Image(blob=asyncio.run(blobs.put(b"png")), mime="image/png")))
    script, rules = [Reply(text=("x",))], Rules(cache_marks=True)
    _, seen = exchange(script, ask(message), profile=profile, rules=rules, blobs=blobs)
    text, picture = seen[0].body["messages"][1]["content"]
    assert text["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert picture["type"] == "image_url"
    assert "cache_control" not in picture
