"""What is particular of each provider, as its row says it, before a fake that insists on it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from limpet.llm.profiles import profile_of
from limpet.testing.fakes import Call, FakeOpenAI, Reply, Rules
from limpet.testing.fakes.faults import delta, end
from limpet.testing.wires import answer_of, ask, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage
from limpet.types.profile import Profile

TOOLS = (tool("look"),)
ID = "call_1740241912345"
OLD = AssistantMessage((ToolCall(ID, "look", "{}"),), Producer("x", "openai_chat", "old"), "tool_calls")
HISTORY = (user("go"), OLD, ToolMessage(ID, "look", (Text("fine"),)), user("and?"))


def body_of(
    profile: Profile, request: Request, *, rules: Rules | None = None, reply: Reply | None = None
) -> tuple[dict, AssistantMessage]:
    """The body that the fake took, and the answer."""

    async def run():
        async with FakeOpenAI([reply or Reply(text=("ok",))], rules=rules) as server:
            async with wire_at(server, profile) as model:
                answer = await answer_of(model, request)
            return server.requests[0].body, answer

    return asyncio.run(run())


KIMI = Rules(kimi=True, forbidden=("max_tokens", "temperature"))


@pytest.mark.parametrize(
    ("provider", "model", "rules"),
    [
        ("moonshot", "kimi-k3", KIMI),
        ("moonshot-cn", "kimi-k2.6", KIMI),
        ("kimi-coding", "kimi-for-coding", KIMI),
        ("deepseek", "deepseek-v4-flash", Rules(deepseek=True, forbidden=("max_completion_tokens",))),
        ("mistral", "mistral-medium-latest", Rules(id_pattern="[A-Za-z0-9]{9}", forbidden=("stream_options",))),
        ("groq", "openai/gpt-oss-120b", Rules(forbidden=("max_tokens",))),
        ("cerebras", "gpt-oss-120b", Rules(forbidden=("max_tokens",))),
        ("xai", "grok-4.5", Rules(forbidden=("max_tokens",))),
        ("minimax", "MiniMax-M3", Rules(forbidden=("max_tokens",))),
        ("together", "zai-org/GLM-5.3", Rules(forbidden=("max_completion_tokens",))),
        ("zai", "glm-5.3", Rules(forbidden=("max_completion_tokens", "reasoning_effort"))),
        ("github", "openai/gpt-5-mini", Rules(forbidden=("max_tokens", "temperature"))),
    ],
)
def test_a_tool_turn_of_another_model_is_taken(provider: str, model: str, rules: Rules):
    sampling = Sampling(max_tokens=500, temperature=0.5, thinking="low")
    body, answer = body_of(profile_of(provider, model), ask(*HISTORY, tools=TOOLS, sampling=sampling), rules=rules)
    assert answer.text == "ok"
    assert body["messages"][-1]["role"] == "user"


@pytest.mark.parametrize("provider", ["groq", "cerebras"])
def test_no_reasoning_goes_to_those_who_refuse_the_field(provider: str):
    profile = profile_of(provider, "moonshotai/kimi-k2-instruct-0905")
    own = AssistantMessage((Thinking("plan"), *OLD.content), profile.producer, "tool_calls")
    body, _ = body_of(profile, ask(HISTORY[0], own, *HISTORY[2:], tools=TOOLS))
    assert not any("reasoning_content" in message for message in body["messages"])


@pytest.mark.parametrize(
    ("provider", "model", "level", "expected"),
    [
        ("deepseek", "deepseek-v4-pro", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("deepseek", "deepseek-v4-pro", "off", {"thinking": {"type": "disabled"}}),
        ("zai", "glm-5.3", "medium", {"thinking": {"type": "enabled"}}),
        ("zhipu", "glm-5.3", "off", {"thinking": {"type": "disabled"}}),
        ("volcengine", "doubao-seed-2.0-pro", "off", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k3", "off", {"reasoning_effort": "low"}),
        ("moonshot", "kimi-k3", "high", {"reasoning_effort": "max"}),
        ("moonshot", "kimi-k2.6", "off", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k2.7-code", "off", {}),
        ("qwen", "qwen3.6-plus", "off", {"enable_thinking": False}),
        ("qwen-cn", "qwen3.7-max", "high", {"enable_thinking": True}),
        ("siliconflow", "zai-org/GLM-5.3", "off", {"enable_thinking": False}),
        ("minimax", "MiniMax-M3", "high", {"thinking": {"type": "adaptive"}}),
        ("minimax", "MiniMax-M2.5", "off", {}),
        ("mistral", "mistral-medium-latest", "low", {"reasoning_effort": "high"}),
        ("mistral", "mistral-medium-latest", "off", {"reasoning_effort": "none"}),
        ("mistral", "codestral-2508", "high", {}),
        ("groq", "qwen/qwen3-32b", "high", {"reasoning_effort": "default"}),
        ("groq", "openai/gpt-oss-120b", "off", {"reasoning_effort": "low"}),
        ("groq", "llama-3.3-70b-versatile", "high", {}),
        ("xai", "grok-4.5", "off", {"reasoning_effort": "low"}),
        ("xai", "grok-4.3", "off", {"reasoning_effort": "none"}),
        ("xai", "grok-4.20", "high", {}),
        ("together", "zai-org/GLM-5.3", "off", {"reasoning": {"enabled": False}}),
        ("fireworks", "accounts/fireworks/models/glm-5p3", "off", {"reasoning_effort": "low"}),
        ("nvidia", "nvidia/nemotron-3-super-120b-a12b", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("sglang", "qwen3", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_how_each_is_asked_to_reason_more_or_less(provider: str, model: str, level, expected: dict):
    body, _ = body_of(profile_of(provider, model), ask(sampling=Sampling(thinking=level)))
    names = ("thinking", "reasoning_effort", "enable_thinking", "reasoning", "chat_template_kwargs")
    assert {name: body[name] for name in names if name in body} == expected


def test_reasoning_of_minimax_comes_apart_and_goes_back_as_it_came():
    profile = profile_of("minimax", "MiniMax-M3")
    detail = [{"type": "reasoning.text", "text": "plan"}]
    chunks = (delta(reasoning_details=detail), delta(content="done"), end())
    body, answer = body_of(profile, ask(), reply=Reply(chunks=chunks))
    assert body["reasoning_split"] is True
    assert answer.content == (Thinking("plan"), Text("done"))
    body, _ = body_of(profile, ask(user("one"), answer, user("two")))
    assert [message["reasoning_details"] for message in body["messages"] if "reasoning_details" in message] == [detail]


@pytest.mark.parametrize("reply", [Reply(text=("a", "b"), thinking="plan"), Reply(calls=(Call("look"), Call("look")))])
def test_a_service_that_cannot_stream_is_asked_for_all_at_once(reply: Reply):
    profile = structs.replace(profile_of("custom", "m"), streaming=False)
    body, answer = body_of(profile, ask(tools=TOOLS), reply=reply, rules=Rules(streams=False))
    assert (body["stream"], "stream_options" in body) == (False, False)
    assert answer.text == "".join(reply.text)
    assert [call.name for call in answer.calls] == [call.name for call in reply.calls]
    assert answer.usage.input == 100


def test_one_call_at_a_time_is_asked_for_where_more_are_not_taken():
    body, _ = body_of(structs.replace(profile_of("custom", "m"), parallel_calls=False), ask(tools=TOOLS))
    assert body["parallel_tool_calls"] is False
