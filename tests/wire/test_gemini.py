from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from limpet.errors import CredentialError, RateLimitError, UpstreamError
from limpet.testing.fakes import Call, FakeGemini, Reply
from limpet.testing.fakes.gemini import STAND_IN
from limpet.testing.wires import answer_of, ask, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage
from limpet.types.profile import Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="gemini", wire="gemini", model="gemini-3", call_signature=STAND_IN)
TOOLS = (tool("look"), tool("write"))


def exchange(script: list[Reply], *requests: Request, profile: Profile = PROFILE):
    async def run():
        async with FakeGemini(script) as server, wire_at(server, profile) as model:
            return [await answer_of(model, request) for request in requests], server.requests

    return asyncio.run(run())


def part(finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"candidates": [{"content": {"role": "model", "parts": [fields] if fields else []}, "finishReason": finish}]}


def test_the_request_names_the_model_in_its_path_and_carries_the_key_in_a_header():
    _, seen = exchange([Reply(text=("x",))], ask(tools=TOOLS))
    assert (seen[0].path, seen[0].query) == ("/v1beta/models/gemini-3:streamGenerateContent", "alt=sse")
    assert seen[0].body["systemInstruction"] == {"parts": [{"text": "You are Limpet."}]}
    assert seen[0].body["tools"] == [
        {"functionDeclarations": [{"name": name, "description": "a tool"} for name in ("look", "write")]}
    ]


def test_signatures_go_back_with_the_part_they_came_with():
    async def run():
        script = [Reply(text=("Hm.",), calls=(Call("look"), Call("write"))), Reply(text=("ok",), signature="T1")]
        async with FakeGemini([*script, Reply()]) as server, wire_at(server, PROFILE) as model:
            history = [user("Hi")]
            for _ in range(2):
                answer = await answer_of(model, ask(*history, tools=TOOLS))
                history += [answer, *(ToolMessage(c.id, c.name, (Text("1"),)) for c in answer.calls)]
            await answer_of(model, ask(*history, user("more"), tools=TOOLS))
            return server.requests[2].body["contents"]

    _, calls, results, text, _ = asyncio.run(run())
    assert ["thoughtSignature" in found for found in calls["parts"]] == [False, True, False]
    assert [found["functionResponse"]["id"] for found in results["parts"]] == ["fc0001", "fc0002"]
    assert text["parts"] == [{"text": "ok", "thoughtSignature": "T1"}]


def test_calls_of_another_model_carry_the_stand_in_of_the_profile_once():
    calls = (Text("so", "msg_1"), ToolCall("a:1", "look", "{}", signature="fc_1"), ToolCall("b", "look", "{}"))
    answer = AssistantMessage((Thinking("hm", "S"), *calls), Producer("openai", "openai_responses", "g"))
    results = [ToolMessage(id, "look", (Text("1"),), is_error=id == "b") for id in ("a:1", "b")]
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), answer, *results, tools=TOOLS))
    _, sent, told = seen[0].body["contents"]
    assert [found.get("thoughtSignature") for found in sent["parts"]] == [None, STAND_IN, None]
    assert [list(found["functionResponse"]["response"]) for found in told["parts"]] == [["output"], ["error"]]


def test_thoughts_are_thinking_and_each_signature_has_its_block():
    chunks = (
        part(text="plan ", thought=True),
        part(text="a", thought=True, thoughtSignature="S1"),
        part(text="b", thought=True, thoughtSignature="S2"),
        part(text="Hi"),
        part("STOP", text="", thoughtSignature="S3"),
    )
    (answer,), _ = exchange([Reply(chunks=chunks)], ask())
    assert answer.content == (Thinking("plan a", "S1"), Thinking("b", "S2"), Text("Hi", "S3"))


def test_a_signature_without_text_is_kept():
    (answer,), _ = exchange([Reply(chunks=(part("STOP", text="", thoughtSignature="S"),))], ask())
    assert answer.content == (Thinking("", "S"),)


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "OTHER"])
def test_a_safety_stop_is_a_refusal_that_says_why(reason: str):
    (answer,), _ = exchange([Reply(text=("half",), stop=reason)], ask())
    assert answer.stop == "refusal"
    assert answer.text.startswith("half\n\n[The service refused the answer: ")
    assert f"({reason})" in answer.text


def test_a_blocked_request_is_a_refusal():
    chunk = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    (answer,), _ = exchange([Reply(chunks=(chunk,))], ask())
    assert (answer.stop, answer.usage.input) == ("refusal", 3)
    assert "refused the request" in answer.text


@pytest.mark.parametrize(("reply", "stop"), [(Reply(text=("x",), stop="MAX_TOKENS"), "length"), (Reply(), "stop")])
def test_reasons_to_stop(reply: Reply, stop: str):
    (answer,), _ = exchange([reply], ask())
    assert answer.stop == stop


def test_usage_counts_thoughts_as_output():
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    chunk = {**part("STOP", text="x"), "usageMetadata": usage}
    (answer,), _ = exchange([Reply(chunks=(chunk,))], ask())
    assert answer.usage == Usage(input=60, output=12, cache_read=40, reasoning=7)


@pytest.mark.parametrize(
    ("style", "level", "config"),
    [
        ("budget", "off", {"thinkingBudget": 0}),
        ("budget", "low", {"includeThoughts": True, "thinkingBudget": 2048}),
        ("effort", "off", {"thinkingLevel": "minimal"}),
        ("effort_only", "off", {"thinkingLevel": "low"}),
        ("effort", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("", "high", None),
    ],
)
def test_how_reasoning_is_asked_for(style, level, config):
    request = ask(sampling=Sampling(thinking=level, max_tokens=99, temperature=0.5))
    _, seen = exchange([Reply(text=("x",))], request, profile=structs.replace(PROFILE, thinking=style))
    sent = seen[0].body["generationConfig"]
    assert (sent.get("thinkingConfig"), sent["maxOutputTokens"], sent["temperature"]) == (config, 99, 0.5)


def test_no_calls_wanted_keeps_the_tools():
    _, seen = exchange([Reply(text=("x",))], ask(tools=TOOLS, tool_choice="none"))
    assert seen[0].body["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}


ERROR = {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}
BAD_KEY = {
    "code": 400,
    "message": "API key not valid.",
    "status": "INVALID_ARGUMENT",
    "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
}


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply(chunks=({"error": ERROR},)), RateLimitError, "Quota"),
        (Reply(status=429, body=[{"error": ERROR}]), RateLimitError, "Quota"),
        (Reply(status=400, body={"error": BAD_KEY}), CredentialError, "API key"),
        (Reply(text=("x",), stop="MALFORMED_FUNCTION_CALL"), UpstreamError, "MALFORMED"),
        (Reply(chunks=({"usageMetadata": {}},)), UpstreamError, "no candidates"),
    ],
)
def test_faults_become_the_error_that_says_what_to_do(reply: Reply, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        exchange([reply], ask())
