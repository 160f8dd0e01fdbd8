from __future__ import annotations

import json

import pytest

from limpet.errors import ContextOverflowError, CredentialError, ParameterError, RequestError
from limpet.llm.classify import error_of

UNSUPPORTED = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
UNKNOWN = 'Invalid JSON payload received. Unknown name "store": Cannot find field.'
BODIES = [
    ({"error": {"message": "no", "param": "max_tokens", "code": "unsupported_parameter"}}, "max_tokens", "field"),
    ({"error": {"message": UNSUPPORTED, "param": None, "code": None}}, "max_tokens", "field"),
    ({"error": {"message": "no", "param": "temperature", "code": "unsupported_value"}}, "temperature", "field"),
    ({"error": {"message": "no", "param": "reasoning.effort", "code": "unsupported_value"}}, "effort", "value"),
    ({"error": {"message": "Unknown parameter: 'reasoning.summary'."}}, "summary", "field"),
    ({"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}}, "reasoning_effort", "field"),
    ({"detail": [{"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra"}]}, "store", "field"),
    ({"message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "x_y"]}]}, "object": "error"}, "x_y", "field"),
    (
        {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'thinking'), 'msg': 'Extra'}]"},
        "thinking",
        "field",
    ),
    (
        {"type": "error", "error": {"type": "invalid_request_error", "message": "x: Extra inputs are not permitted"}},
        "x",
        "field",
    ),
    (
        {"error": {"message": "messages.0.content.1.cache_control: Extra inputs are not permitted"}},
        "cache_control",
        "field",
    ),
    ({"error": {"message": "Extra inputs are not permitted, field: 'thinking', value: 1"}}, "thinking", "field"),
    (
        [{"error": {"code": 400, "message": UNKNOWN}}],
        "store",
        "field",
    ),
    ({"error": {"message": "Thinking level is not supported for this model."}}, "thinkingConfig", "field"),
    ({"error": {"message": "`temperature` is deprecated for this model."}}, "temperature", "field"),
    (
        {"error": {"message": "'messages.2' : for 'role:assistant' the following must be satisfied["
                              "('messages.2' : property 'reasoning_content' is unsupported)]"}},
        "reasoning_content",
        "field",
    ),
    ({"message": "body.max_completion_tokens : property 'max_completion_tokens' is unsupported"},
     "max_completion_tokens", "field"),
    ({"error": {"message": "invalid temperature: only 1 is allowed for this model"}}, "temperature", "field"),
    ({"error": "Argument not supported on this model: reasoningEffort"}, "reasoningEffort", "field"),
    ({"message": "Malformed input request: #: extraneous key [top_p] is not permitted, please reformat"},
     "top_p", "field"),
    ({"error": {"message": "litellm.UnsupportedParamsError: x does not support parameters: ['store'], for model=y"}},
     "store", "field"),
    ({"error": {"message": '"qwen2.5:3b" does not support thinking'}}, "reasoning_effort", "field"),
    (
        {"error": {"message": "Provider returned error", "code": 400,
                   "metadata": {"raw": '{"error":{"message":"no","param":"store","code":"unknown_parameter"}}'}}},
        "store",
        "field",
    ),
]  # fmt: skip


def error(body: object, *, status: int = 400):
    return error_of(status, json.dumps(body).encode(), headers={}, provider="p")


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("body", "name", "scope"), BODIES)
def test_the_field_is_found(body: object, name: str, scope: str, status: int):
    found = error(body, status=status)
    assert isinstance(found, ParameterError)
    assert (found.name, found.scope) == (name, scope)


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: \"Unsupported parameter: 'max_tokens'\"",
        "messages[3].content: you wrote: Unknown parameter: 'temperature'",
        "The tool said: temperature: Extra inputs are not permitted",
    ],
)
def test_what_the_user_said_is_no_sign(message: str):
    assert type(error({"error": {"message": message, "type": "invalid_request_error"}})) is RequestError


def test_other_failures_stay_what_they_are():
    refused = {"message": "Unknown parameter: 'x'", "code": "unknown_parameter", "param": "x"}
    assert isinstance(error({"error": {**refused, "code": "context_length_exceeded"}}), ContextOverflowError)
    assert isinstance(error({"error": refused}, status=401), CredentialError)
    assert not isinstance(error({"error": refused}, status=500), ParameterError)
