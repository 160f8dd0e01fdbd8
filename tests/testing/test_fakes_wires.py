"""The fakes refuse what the real services refuse."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from limpet.testing.fakes import FakeAzure, FakeBedrock, FakeGemini, FakeResponses, Reply

CALL = {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
ASK = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
PATHS = {
    FakeResponses: "/responses",
    FakeGemini: "/models/g:streamGenerateContent?alt=sse",
    FakeBedrock: "/model/m/converse-stream",
    FakeAzure: "/openai/deployments/d/chat/completions",
}


def refusal(kind, body: object, **headers: str) -> str:
    """What the fake answers a hand-made request with."""
    own = headers or {"Authorization": "Bearer sk-test", "x-goog-api-key": "sk-test"}

    async def run():
        async with kind([Reply(text=("ok",))]) as server, aiohttp.ClientSession() as session:
            async with session.post(server.base_url + PATHS[kind], data=json.dumps(body), headers=own) as response:
                await response.read()
                return "; ".join(server.refusals)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "too short"),
        ([ASK, CALL], "No tool output found"),
        ([ASK, OUTPUT], "No tool call found"),
        ([ASK, {**CALL, "id": "call_1"}, OUTPUT], "fc_"),
        ([ASK, {**SAID, "id": "m1"}], "msg_"),
        ([ASK, {**SEALED, "encrypted_content": ""}, SAID], "not persisted"),
        ([ASK, SEALED, SAID], "could not be verified"),
        ([{"role": "user", "content": [{"type": "output_text", "text": "x"}]}], "Supported values"),
        ([ASK, CALL, OUTPUT, SAID, ASK], ""),
    ],
)
def test_responses(items: list, words: str):
    found = refusal(FakeResponses, {"model": "m", "input": items, "stream": True})
    assert words in found
    assert bool(found) == bool(words)


def test_responses_makes_tools_strict_that_do_not_say_otherwise():
    tool = {"type": "function", "name": "t", "parameters": {"type": "object", "properties": {}}}
    assert "additionalProperties" in refusal(FakeResponses, {"model": "m", "input": [ASK], "tools": [tool]})


def part(**fields: object) -> dict[str, object]:
    return {"role": "model" if "functionCall" in fields else "user", "parts": [fields]}


HI, ASKS = part(text="Hi"), part(functionCall={"name": "t", "args": {}, "id": "a"})
ANSWER = part(functionResponse={"name": "t", "id": "a", "response": {}})


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ([], "not specified"),
        ([ASKS], "start with a user turn"),
        ([{"role": "user", "parts": []}], "at least one parts"),
        ([part(text="x", inlineData={})], "oneof"),
        ([HI, ASKS], "missing a thought_signature"),
        ([HI, {**ASKS, "parts": [{**ASKS["parts"][0], "thoughtSignature": "made up"}]}], "Corrupted"),
        ([HI, ANSWER], "number of function response parts"),
        ([HI], ""),
    ],
)
def test_gemini(contents: list, words: str):
    found = refusal(FakeGemini, {"contents": contents})
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    "keyword", ["$ref", "additionalProperties", "const", "uniqueItems", "$schema", "propertyNames"]
)
def test_gemini_knows_few_words_of_json_schema(keyword: str):
    schema = {"type": "object", "properties": {"a": {"type": "string", keyword: "#/x"}}}
    tools = [{"functionDeclarations": [{"name": "t", "parameters": schema}]}]
    assert f'Unknown name "{keyword}"' in refusal(FakeGemini, {"contents": [HI], "tools": tools})


def turn(role: str, **block: object) -> dict[str, object]:
    return {"role": role, "content": [block]}


USE = turn("assistant", toolUse={"toolUseId": "a", "name": "t", "input": {}})
GAVE = turn("user", toolResult={"toolUseId": "a", "content": [{"text": "x"}]})
CONFIG = {"tools": [{"toolSpec": {"name": "t", "inputSchema": {"json": {"type": "object", "properties": {}}}}}]}


@pytest.mark.parametrize(
    ("messages", "config", "words"),
    [
        ([], CONFIG, "must start with a user message"),
        ([turn("user", text=" ")], CONFIG, "blank"),
        ([turn("user", text="x"), turn("user", text="y")], CONFIG, "alternate"),
        ([turn("user", text="x"), USE], CONFIG, "Expected toolResult"),
        ([turn("user", text="x"), USE, GAVE], None, "toolConfig"),
        ([GAVE], CONFIG, "Expected toolResult"),
        ([turn("user", text="x"), USE, GAVE], CONFIG, ""),
    ],
)
def test_bedrock(messages: list, config: object, words: str):
    found = refusal(FakeBedrock, {"messages": messages, **({"toolConfig": config} if config else {})})
    assert words in found
    assert bool(found) == bool(words)


SCOPE = "AWS4-HMAC-SHA256 Credential=AKIAFAKE/20260101/us-east-1/bedrock/aws4_request, "


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Authorization": "Bearer other"}, "security token"),
        ({"Authorization": "AWS4-HMAC-SHA256 nonsense"}, "malformed"),
        (
            {
                "Authorization": f"{SCOPE}SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
                "x-amz-date": "20260101T000000Z",
            },
            "does not match",
        ),
        (
            {
                "Authorization": f"{SCOPE}SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
                "x-amz-date": "20260202T000000Z",
            },
            "date",
        ),
    ],
)
def test_bedrock_checks_signatures(headers: dict[str, str], words: str):
    assert words in refusal(FakeBedrock, {"messages": [turn("user", text="x")]}, **headers)


def test_azure_wants_a_version_of_its_api():
    body = {"model": "d", "messages": [{"role": "user", "content": "x"}]}
    assert "api-version" in refusal(FakeAzure, body, **{"api-key": "sk-test"})


FIVE, HOUR = {"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default", "ttl": "1h"}}


@pytest.mark.parametrize(
    ("system", "content", "words"),
    [
        ([{"text": "s"}, HOUR], [{"text": "a"}, FIVE], ""),
        ([{"text": "s"}, FIVE], [{"text": "a"}, HOUR], "must not come after"),
        ([{"text": "s"}, FIVE], [{"text": "a"}, FIVE] * 4, "too many"),
        ([FIVE, {"text": "s"}], [{"text": "a"}], "first block"),
    ],
)
def test_bedrock_checks_cache_points(system: list, content: list, words: str):
    found = refusal(FakeBedrock, {"system": system, "messages": [{"role": "user", "content": content}]})
    assert words in found
    assert bool(found) == bool(words)
