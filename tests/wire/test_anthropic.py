from __future__ import annotations

import asyncio

import pytest
from msgspec import Raw, structs

from limpet.errors import ContextOverflowError, CredentialError, RateLimitError, UpstreamError
from limpet.llm.http import Http
from limpet.llm.names import call_id
from limpet.llm.wire.anthropic import Anthropic
from limpet.testing.fakes import Call, FakeAnthropic, Reply, Rules
from limpet.testing.wires import MemoryBlobs, answer_of, ask, collect, tool, user, wire_at
from limpet.types.content import Image, Opaque, Text, Thinking, ToolCall
from limpet.types.event import ThinkingDelta
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage, UserMessage
from limpet.types.profile import Price, Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="anthropic", wire="anthropic", model="c1", images=True, cache_ttl=3600)
FOREIGN = Producer(provider="openai", wire="openai_chat", model="m1")
MARK = {"type": "ephemeral", "ttl": "1h"}


def exchange(
    script: list[Reply], *requests: Request, profile: Profile = PROFILE, rules: Rules | None = None, blobs=None
):
    async def run():
        async with FakeAnthropic(script, rules=rules) as server, wire_at(server, profile, blobs=blobs) as model:
            return [await answer_of(model, request) for request in requests], server.requests

    return asyncio.run(run())


def test_thinking_text_and_calls_keep_their_order():
    reply = Reply(
        thinking="plan", text=("Hi ", "you"), calls=(Call("t", '{"a": 1}', id="u1"),), usage=(50, 7), cached=30
    )
    (answer,), _ = exchange([reply], ask(tools=[tool("t")]))
    thinking, text, call = answer.content
    assert (thinking.text, bool(thinking.signature), text.text) == ("plan", True, "Hi you")
    assert call == ToolCall("u1", "t", '{"a": 1}')
    assert (answer.stop, answer.usage) == ("tool_calls", Usage(input=50, output=7, cache_read=30))


def test_thinking_streams_as_thinking():
    async def run():
        async with FakeAnthropic([Reply(thinking="abc", text=("x",))]) as server, wire_at(server, PROFILE) as model:
            return await collect(model, ask())

    assert [event.text for event in asyncio.run(run()) if isinstance(event, ThinkingDelta)] == ["a", "b", "c"]


def test_marks_end_tools_system_and_the_newest_user_message():
    answer = AssistantMessage((Text("yes"),), PROFILE.producer)
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), answer, user("b", runtime="[now]"), tools=[tool("t")]))
    body = seen[0].body
    assert body["system"] == [{"type": "text", "text": "You are Limpet.", "cache_control": MARK}]
    assert body["tools"][0]["cache_control"] == MARK
    assert body["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "a"}]}
    assert body["messages"][2]["content"] == [
        {"type": "text", "text": "b"},
        {"type": "text", "text": "[now]", "cache_control": MARK},
    ]


def test_without_a_system_text_the_last_tool_is_marked():
    _, seen = exchange([Reply(text=("x",))], ask(system="", tools=[tool("a"), tool("b")]))
    assert "system" not in seen[0].body
    assert ["cache_control" in found for found in seen[0].body["tools"]] == [False, True]


def test_a_newest_message_of_many_blocks_is_marked_where_it_begins_too():
    texts = [Text(f"queued {number}") for number in range(30)]
    _, seen = exchange([Reply(text=("x",))], ask(UserMessage(tuple(texts)), tools=[tool("t")]))
    marked = ["cache_control" in block for block in seen[0].body["messages"][0]["content"]]
    assert [place for place, found in enumerate(marked) if found] == [0, 29]


def test_steps_of_a_program_are_kept_for_five_minutes_and_single_questions_not_at_all():
    for rhythm, mark in (("quick", {"type": "ephemeral"}), ("once", None)):
        request = structs.replace(ask(tools=[tool("t")]), rhythm=rhythm)
        _, seen = exchange([Reply(text=("x",))], request)
        body = seen[0].body
        blocks = (body["tools"][0], body["system"][0], body["messages"][0]["content"][0])
        assert [block.get("cache_control") for block in blocks] == [mark] * 3


@pytest.mark.parametrize(("written", "cost"), [({}, 4_000), ({"ephemeral_5m_input_tokens": 1_000}, 2_500)])
def test_what_is_written_for_five_minutes_costs_less_than_for_an_hour(written: dict[str, int], cost: int):
    usage = {"input_tokens": 0, "cache_creation_input_tokens": 1_000, "cache_creation": written}
    chunks = (
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 0}},
        {"type": "message_stop"},
    )
    profile = structs.replace(PROFILE, price=Price(input=2_000_000, output=0, cache_write=4_000_000))
    (answer,), _ = exchange([Reply(chunks=chunks)], ask(), profile=profile)
    assert (answer.usage.cache_write, answer.usage.cost) == (1_000, cost)


def test_only_the_place_of_the_mark_changes_between_requests():
    messages = [user("one")]

    async def run():
        script = [Reply(text=(f"answer {n}",)) for n in range(3)]
        async with FakeAnthropic(script) as server, wire_at(server, PROFILE) as model:
            for n in range(3):
                messages.append(await answer_of(model, ask(*messages)))
                messages.append(user(f"next {n}"))
            return [seen.raw for seen in server.requests]

    mark = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
    first, second, third = (raw.replace(mark, b"") for raw in asyncio.run(run()))
    assert second.startswith(first[: first.index(b'],"stream"')])
    assert third.startswith(second[: second.index(b'],"stream"')])


def test_results_of_a_batch_go_back_in_one_user_message_with_what_the_user_says_next():
    calls = (ToolCall("a", "t", '{"x": [1, 2]}'), ToolCall("b", "t", "{}"))
    answer = AssistantMessage(calls, FOREIGN, "tool_calls")
    results = [ToolMessage("a", "t", (Text("1"),)), ToolMessage("b", "t", (Text(" "),), is_error=True)]
    _, seen = exchange([Reply(text=("x",))], ask(user("go"), answer, *results, user("and?"), tools=[tool("t")]))
    last = seen[0].body["messages"][2]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]
    assert last[1] == {"type": "tool_result", "tool_use_id": "b", "is_error": True}
    assert seen[0].body["messages"][1]["content"][0]["input"] == {"x": [1, 2]}


def test_what_cannot_be_sent_is_left_out_and_neighbours_meet():
    blank = AssistantMessage((Thinking("hm", "S"), Text(" "), Opaque(Raw(b'{"type":"new"}'))), FOREIGN)
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), blank, user("b"), UserMessage(())))
    (message,) = seen[0].body["messages"]
    assert [block["text"] for block in message["content"]] == ["a", "b", "(no text)"]


@pytest.mark.parametrize("id", ["call:1", "functions.exec:38", "x" * 90, "ид"])
def test_odd_ids_become_clean_ones_that_differ(id: str):
    assert call_id(id).isascii()
    assert call_id(id) != call_id(id + "1")
    assert call_id(id) == call_id(id)
    assert len(call_id(id)) <= 64


def test_odd_ids_agree_between_call_and_result():
    answer = AssistantMessage((ToolCall("functions.exec:38", "ex ec", "{}"),), FOREIGN, "tool_calls")
    result = ToolMessage("functions.exec:38", "ex ec", (Text("ok"),))
    _, seen = exchange([Reply(text=("x",))], ask(user("go"), answer, result, tools=[tool("exec")]))
    assert seen[0].body["messages"][1]["content"][0]["name"] == "ex_ec"


def test_pictures_also_inside_results():
    blobs = MemoryBlobs()
    blob = asyncio.run(blobs.put(b"png"))
    answer = AssistantMessage((ToolCall("a", "t", "{}"),), FOREIGN, "tool_calls")
    result = ToolMessage("a", "t", (Image(blob, "image/png"), Image("0" * 64, "image/png", "lost.png")))
    _, seen = exchange([Reply(text=("x",))], ask(user("go"), answer, result, tools=[tool("t")]), blobs=blobs)
    content = seen[0].body["messages"][2]["content"][0]["content"]
    assert content[0]["source"] == {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    assert content[1]["text"] == "[image: lost.png; no longer stored]"


@pytest.mark.parametrize(
    ("style", "level", "fields"),
    [
        ("adaptive", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("effort_only", "low", {"output_config": {"effort": "low"}}),
        ("effort_only", "off", {}),
        ("between_tools", "off", {"thinking": {"type": "between_tools"}}),
        ("between_tools", "low", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("adaptive", "off", {"thinking": {"type": "disabled"}}),
        ("budget", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("budget", None, {}),
    ],
)
def test_how_reasoning_is_asked_for(style, level, fields):
    profile = structs.replace(PROFILE, thinking=style)
    _, seen = exchange([Reply(text=("x",))], ask(sampling=Sampling(thinking=level)), profile=profile)
    assert {name: seen[0].body[name] for name in ("thinking", "output_config") if name in seen[0].body} == fields
    assert seen[0].body["max_tokens"] > 2048


def test_tool_choice_none_keeps_the_tools():
    _, seen = exchange([Reply(text=("x",))], ask(tools=[tool("a")], tool_choice="none"))
    assert seen[0].body["tool_choice"] == {"type": "none"}
    assert len(seen[0].body["tools"]) == 1


ERROR = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(raw=(ERROR,)), UpstreamError, "Overloaded"),
        (Reply(text=("a", "b"), cut_after=4), UpstreamError, "cut off"),
        (Reply(raw=("event: ping\ndata: {}\n\n",)), UpstreamError, "empty"),
        (Reply(raw=("data: {oops\n\n",)), UpstreamError, "not readable"),
        (Reply(body="<html>"), UpstreamError, "HTML"),
        (Reply(status=429, body={"error": {"type": "rate_limit_error", "message": "slow"}}), RateLimitError, "slow"),
    ],
)
def test_faults_become_the_error_that_says_what_to_do(reply: Reply, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        exchange([reply], ask())


def test_overflow_names_the_window():
    with pytest.raises(ContextOverflowError) as caught:
        exchange([], ask(user("x" * 900)), rules=Rules(max_characters=400))
    assert caught.value.limit == 100


def test_a_wrong_key_gives_the_words_of_the_provider():
    async def run():
        async with FakeAnthropic([]) as server:
            at = structs.replace(PROFILE, base_url=server.base_url)
            model = Anthropic(at, key="nope", http=Http("anthropic"))
            try:
                await answer_of(model, ask())
            finally:
                await model.close()

    with pytest.raises(CredentialError, match="invalid x-api-key"):
        asyncio.run(run())
