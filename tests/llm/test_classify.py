from __future__ import annotations

import json

import pytest

from limpet.errors import (
    BillingError,
    ContextOverflowError,
    CredentialError,
    LimpetError,
    RateLimitError,
    RequestError,
    UpstreamError,
)
from limpet.llm.classify import error_inside, error_of


def error(status: int, body: object, provider: str = "openai", headers: dict[str, str] | None = None) -> LimpetError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_of(status, data, headers=headers or {}, provider=provider, address="https://x.test/v1")


OVERFLOWS = [
    (
        "openai",
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128,000 tokens. However",
                "code": "context_length_exceeded",
            }
        },
        128_000,
    ),
    (
        "anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 210,000 tokens > 200,000 maximum",
            },
        },
        200_000,
    ),
    (
        "anthropic",
        413,
        {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
        0,
    ),
    (
        "llamacpp",
        400,
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too big", "n_ctx": 4096}},
        4096,
    ),
    (
        "openrouter",
        400,
        {"error": {"code": 400, "message": "This endpoint's maximum context length is 65536 tokens. However"}},
        65_536,
    ),
    (
        "vllm",
        400,
        {
            "object": "error",
            "type": "BadRequestError",
            "code": 400,
            "message": "This model's maximum context length is 8192 tokens. However",
        },
        8192,
    ),
    (
        "deepseek",
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "This model's maximum context length is 65536 tokens. However",
            }
        },
        65_536,
    ),
]


@pytest.mark.parametrize(("provider", "status", "body", "limit"), OVERFLOWS)
def test_overflow_is_told_by_codes_and_by_the_providers_own_opening_words(provider, status, body, limit):
    found = error(status, body, provider)
    assert isinstance(found, ContextOverflowError)
    assert found.limit == limit


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openrouter", "vllm", "custom"])
@pytest.mark.parametrize(
    "text",
    [
        "Context overflow: prompt too large",
        "invalid content 'prompt is too long: 210000 tokens > 200000 maximum'",
        "messages.1: unexpected text: This model's maximum context length is 8192 tokens.",
        "context_length_exceeded",
    ],
)
def test_quoted_text_of_the_user_is_never_an_overflow(provider: str, text: str):
    assert isinstance(error(400, {"error": {"message": text, "type": "invalid_request_error"}}, provider), RequestError)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"error": {"message": "bad key"}}, CredentialError),
        (403, {"error": {"message": "no"}}, CredentialError),
        (402, {"error": {"message": "no credits"}}, BillingError),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, BillingError),
        (400, {"error": {"message": "Your credit balance is too low to access"}}, BillingError),
        (429, {"error": {"message": "slow down"}}, RateLimitError),
        (400, {"error": {"message": "no"}}, RequestError),
        (404, {"error": "model 'x' not found"}, RequestError),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, RequestError),
        (408, {}, UpstreamError),
        (500, b"", UpstreamError),
        (503, b"<html>", UpstreamError),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, UpstreamError),
        (302, b"", RequestError),
        (500, b'[{"error": {"message": "listed", "code": 500}}]', UpstreamError),
        (400, b"\xff\xfe", RequestError),
    ],
)
def test_status_and_codes_decide(status: int, body: object, kind: type[LimpetError]):
    found = error(status, body)
    assert type(found) is kind
    assert found.status == status


def test_the_words_of_the_provider_reach_the_user():
    found = error(402, {"error": {"message": "no credits"}}, "openrouter")
    assert found.present().startswith("openrouter: no credits")
    said = error(400, {"error": {"message": "Provider returned error", "metadata": {"raw": "bad tool"}}}, "openrouter")
    assert str(said) == "Provider returned error (bad tool)"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1500"}, 1.5), ({}, None), ({"retry-after": "soon"}, None)],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None):
    found = error(429, {}, headers=headers)
    assert isinstance(found, RateLimitError)
    assert found.retry_after == seconds


def test_a_date_to_wait_for():
    found = error(429, {}, headers={"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"})
    assert isinstance(found, RateLimitError)
    assert found.retry_after == 0.0


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"code": 502, "message": "upstream"}, UpstreamError),
        ({"code": 429, "message": "slow"}, RateLimitError),
        ({"type": "overloaded_error", "message": "busy"}, UpstreamError),
        ({"type": "rate_limit_error", "message": "busy"}, RateLimitError),
        ({"code": "context_length_exceeded", "message": "big"}, ContextOverflowError),
        ({"code": "odd", "message": "?"}, UpstreamError),
        ("just text", UpstreamError),
    ],
)
def test_an_error_inside_a_200(value: object, kind: type[LimpetError]):
    assert type(error_inside(value, provider="openai")) is kind


LENGTH = "Please reduce the length of the messages or completion."
WORDS = [
    ("moonshot", 400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 3)", 262_144),
    ("qwen-cn", 400, "Range of input length should be [1, 129024]", 129_024),
    ("minimax", 400, "invalid params, context window exceeds limit (2013)", 0),
    (
        "mistral",
        400,
        "Prompt contains 9 tokens and 0 draft tokens, too large for model with 8 maximum context",
        8,
    ),
    ("groq", 400, LENGTH, 0),
    ("xai", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
    ("cerebras", 400, f"{LENGTH} Current length is 9000 while limit is 8192", 8_192),
    ("fireworks", 400, "The prompt is too long: 1200012, model maximum context length: 1048573", 1_048_573),
    ("github", 413, "Request body too large for gpt-4.1 model. Max size: 8000 tokens.", 8_000),
    ("sglang", 400, "The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8_192),
]


@pytest.mark.parametrize(("provider", "status", "message", "limit"), WORDS, ids=[row[0] for row in WORDS])
def test_windows_are_learned_from_the_words_of_each_provider(provider: str, status: int, message: str, limit: int):
    found = error(status, {"error": {"message": message}}, provider=provider)
    assert isinstance(found, ContextOverflowError)
    assert found.limit == limit
