from __future__ import annotations

import asyncio
import sys

import pytest
from msgspec import structs

from limpet.errors import ConfigError, ContextOverflowError, CredentialError, RateLimitError, UpstreamError
from limpet.llm.aws import Signer
from limpet.testing.fakes import Call, FakeBedrock, Reply
from limpet.testing.fakes.bedrock import ACCESS_KEY, SECRET_KEY
from limpet.testing.wires import answer_of, ask, tool, user, wire_at
from limpet.types.content import Text, Thinking, ToolCall
from limpet.types.message import AssistantMessage, Producer, Request, Sampling, ToolMessage
from limpet.types.profile import Profile
from limpet.types.usage import Usage

PROFILE = Profile(provider="bedrock", wire="bedrock", model="us.anthropic.claude-v1:0", cache_ttl=300)
FOREIGN = Producer("openai", "openai_chat", "m")
TOOLS = (tool("look"),)
POINT = {"cachePoint": {"type": "default"}}


def exchange(script: list[Reply], *requests: Request, profile: Profile = PROFILE, key: str | None = None):
    async def run():
        async with FakeBedrock(script) as server, wire_at(server, profile, key=key) as model:
            return [await answer_of(model, request) for request in requests], server.requests

    return asyncio.run(run())


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_signed_request_is_what_aws_computes_itself(credentials):
    (answer,), seen = exchange([Reply(text=("hi",))], ask(user("é" * 1000)), key="")
    assert answer.text == "hi"
    assert "/eu-west-1/bedrock/aws4_request" in seen[0].headers["authorization"]
    assert seen[0].path == "/model/us.anthropic.claude-v1%3A0/converse-stream"


def test_a_large_body_is_signed_in_its_parts(credentials):
    answer = AssistantMessage((Text("yes"),), FOREIGN)
    history = [message for n in range(200) for message in (user(f"{n} " * 500), answer)]
    exchange([Reply(text=("hi",))], ask(*history, user("now")), key="")


def test_a_wrong_secret_is_a_matter_of_credentials(credentials):
    credentials.setenv("AWS_SECRET_ACCESS_KEY", "other")
    with pytest.raises(CredentialError, match="does not match"):
        exchange([], ask(), key="")


def test_without_credentials_it_is_said_where_they_may_stand(credentials):
    credentials.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(CredentialError, match="no AWS credentials") as caught:
        exchange([], ask(), key="")
    assert "AWS_PROFILE" in caught.value.hint


def test_without_botocore_it_is_said_how_to_install_it(credentials):
    credentials.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(ConfigError, match="botocore") as caught:
        exchange([], ask(), key="")
    assert "limpet[bedrock]" in caught.value.hint


def test_thinking_text_and_calls_keep_their_order():
    reply = Reply(
        thinking="plan", text=("Hi ", "you"), calls=(Call("look", '{"a": 1}', id="u1"),), usage=(50, 7), cached=9
    )
    (answer,), _ = exchange([reply], ask(tools=TOOLS))
    thinking, text, call = answer.content
    assert (thinking.text, bool(thinking.signature), text.text) == ("plan", True, "Hi you")
    assert call == ToolCall("u1", "look", '{"a": 1}')
    assert answer.usage == Usage(input=50, output=7, cache_read=9)


def test_cache_points_end_the_system_text_and_the_newest_user_message():
    _, seen = exchange([Reply(text=("x",))], ask(user("a"), AssistantMessage((Text("b"),), FOREIGN), user("c")))
    body = seen[0].body
    assert body["system"][1] == body["messages"][2]["content"][1] == POINT
    assert body["messages"][0]["content"] == [{"text": "a"}]


def test_people_of_newer_models_get_an_hour():
    profile = structs.replace(PROFILE, cache_ttl=3_600)
    _, seen = exchange([Reply(text=("x",))], ask(tools=[tool("t")]), profile=profile)
    body = seen[0].body
    points = (body["toolConfig"]["tools"][1], body["system"][1], body["messages"][0]["content"][1])
    assert all(point == {"cachePoint": {"type": "default", "ttl": "1h"}} for point in points)


def test_redacted_reasoning_is_kept():
    chunks = (
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": "QUJD"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "x"}}},
        {"messageStop": {"stopReason": "end_turn"}},
    )
    (answer,), _ = exchange([Reply(chunks=chunks)], ask())
    assert answer.content == (Thinking("", redacted="QUJD"), Text("x"))
    _, seen = exchange([Reply(text=("y",))], ask(user("a"), answer, user("b")))
    sent = seen[0].body["messages"][1]["content"]
    assert sent == [{"reasoningContent": {"redactedContent": "QUJD"}}, {"text": "x"}]


def test_calls_of_the_past_name_their_tools_when_none_is_offered():
    answer = AssistantMessage((ToolCall("a", "gone", "{}"),), FOREIGN, "tool_calls")
    _, seen = exchange([Reply(text=("x",))], ask(user("go"), answer, ToolMessage("a", "gone", ())))
    only, point = seen[0].body["toolConfig"]["tools"]
    assert (only["toolSpec"]["name"], point) == ("gone", POINT)


@pytest.mark.parametrize(
    ("style", "level", "fields"),
    [
        ("budget", "low", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        ("adaptive", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("effort", "low", {"reasoning_effort": "low"}),
        ("budget", "off", None),
    ],
)
def test_how_reasoning_is_asked_for(style, level, fields):
    request = ask(sampling=Sampling(thinking=level, max_tokens=100))
    _, seen = exchange([Reply(text=("x",))], request, profile=structs.replace(PROFILE, thinking=style))
    assert seen[0].body.get("additionalModelRequestFields") == fields
    assert seen[0].body["inferenceConfig"]["maxTokens"] >= 100


def fault(kind: str, message: str) -> Reply:
    return Reply(chunks=({kind: {"message": message}},))


def refused(status: int, kind: str, message: str) -> Reply:
    return Reply(status=status, headers={"x-amzn-ErrorType": f"{kind}:http://x/"}, body={"message": message})


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (fault("throttlingException", "slow"), RateLimitError, "slow"),
        (fault("internalServerException", "oops"), UpstreamError, "oops"),
        (fault("validationException", "Input is too long for requested model."), ContextOverflowError, "too long"),
        (refused(429, "ThrottlingException", "Too many tokens"), RateLimitError, "tokens"),
        (refused(403, "ExpiredTokenException", "The token has expired"), CredentialError, "expired"),
        (refused(424, "ModelErrorException", "the model failed"), UpstreamError, "failed"),
        (Reply(text=("x",), stop="malformed_tool_use"), UpstreamError, "malformed"),
        (Reply(raw=("\x00\x00",)), UpstreamError, "empty"),
    ],
)
def test_faults_become_the_error_that_says_what_to_do(reply: Reply, kind: type[Exception], words: str):
    with pytest.raises(kind, match=words):
        exchange([reply], ask())


def test_the_region_is_the_configured_one_and_in_a_signature_that_of_the_address(credentials):
    signer = Signer("bedrock")
    assert asyncio.run(signer.region()) == "eu-west-1"
    address = "https://bedrock-runtime.ap-southeast-2.amazonaws.com/model/x/converse-stream"
    assert "/ap-southeast-2/bedrock/" in asyncio.run(signer.headers(address, [b"{}"]))["Authorization"]
