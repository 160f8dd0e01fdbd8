"""What a refusal means: HTTP status and structured codes to an error class, once, with a table per provider.

Only what the provider itself says is looked at: status, codes, and the beginning of its own error message where a
provider has no code for it. Messages may quote the user's text, so patterns are anchored at their start.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping

from msgspec import Struct, structs

from limpet.errors import (
    BillingError,
    ContextOverflowError,
    CredentialError,
    ModelError,
    ParameterError,
    RateLimitError,
    RequestError,
    UpstreamError,
)
from limpet.llm.refusal import Refusal, read, refusal_in


class Sign(Struct, frozen=True):
    """One way in which a provider says something: a code, or the start of its message (a regular expression).

    The first group of the expression is the window in tokens, where it has one.
    """

    code: str = ""
    message: str = ""
    statuses: tuple[int, ...] = (400,)


_VLLM = Sign(
    message=r"(?:VLLMValidationError: |Error code: 400 - )?This model's maximum context length is ([\d,]+) tokens"
)
OVERFLOW: dict[str, tuple[Sign, ...]] = {
    "openai": (Sign(code="context_length_exceeded", statuses=(400, 200)), _VLLM),
    "anthropic": (
        Sign(code="model_context_window_exceeded", statuses=(400, 200)),
        Sign(code="request_too_large", statuses=(413,)),
        Sign(message=r"prompt is too long: [\d,]+ tokens > ([\d,]+)"),
        Sign(message=r"input length and `max_tokens` exceed context limit: .*> ([\d,]+)"),
    ),
    "openrouter": (
        Sign(code="context_length_exceeded", statuses=(400, 200)),
        Sign(message=r"This endpoint's maximum context length is ([\d,]+) tokens"),
    ),
    "deepseek": (_VLLM,),
    "llamacpp": (
        Sign(code="exceed_context_size_error", statuses=(400, 500)),
        Sign(message=r"the request exceeds the available context size", statuses=(400, 500)),
    ),
    "lmstudio": (
        Sign(message=r"Trying to keep the first \d+ tokens when context the overflows", statuses=(400, 200, 500)),
        Sign(message=r"The number of tokens to keep from the initial prompt is greater than the context length"),
    ),
    "gemini": (
        Sign(
            message=r"The input token count \(?[\d,]*\)? ?exceeds the maximum number of tokens allowed \(?([\d,]+)\)?"
        ),
    ),
    "bedrock": (
        Sign(message=r"Input is too long for requested model", statuses=(400, 200)),
        Sign(message=r"(?:The model returned the following errors: )?prompt is too long: [\d,]+ tokens > ([\d,]+)"),
        Sign(message=r"(?:The model returned the following errors: )?Input Tokens Exceeded", statuses=(400, 200)),
    ),
    "ollama": (Sign(message=r"(?:the )?(?:input|prompt)(?: length)? exceeds (?:the )?(?:maximum )?context length"),),
    "vllm": (
        _VLLM,
        Sign(message=r"The decoder prompt \(length \d+\) is longer than the maximum model length of ([\d,]+)"),
    ),
    "sglang": (
        Sign(message=r"The input \([\d,]+ tokens\) is longer than the model's context length \(([\d,]+)"),
        Sign(message=r"Requested token count exceeds the model's maximum context length of ([\d,]+) tokens"),
    ),
    **dict.fromkeys(
        ("moonshot", "moonshot-cn", "kimi-coding"),
        (Sign(message=r"(?:Invalid request: )?Your request exceeded model token limit: ([\d,]+)"),),
    ),
    **dict.fromkeys(
        ("qwen", "qwen-cn"), (Sign(message=r"(?:<\d+> \S+: )?Range of input length should be \[1, ([\d,]+)\]"),)
    ),
    **dict.fromkeys(
        ("minimax", "minimax-cn"),
        (Sign(message=r"invalid params, context window exceeds limit", statuses=(400, 200)),),
    ),
    "mistral": (
        Sign(message=r"Prompt contains [\d,]+ tokens.{0,80}too large for model with ([\d,]+) maximum context"),
    ),
    "groq": (Sign(message=r"Please reduce the length of the messages or completion"),),
    "xai": (Sign(message=r"This model's maximum prompt length is ([\d,]+)"),),
    "cerebras": (
        Sign(message=r"Please reduce the length of the messages or completion\..{0,60}limit is ([\d,]+)"),
        Sign(message=r"Please reduce the length of the messages or completion"),
    ),
    "fireworks": (Sign(message=r"The prompt is too long: [\d,]+, model maximum context length: ([\d,]+)"),),
    "github": (
        Sign(code="tokens_limit_reached", statuses=(413,)),
        Sign(message=r"Request body too large for \S+ model\. Max size: ([\d,]+) tokens", statuses=(413,)),
    ),
}
_ANY = (
    Sign(code="context_length_exceeded", statuses=(400, 413, 422, 200)),
    Sign(code="exceed_context_size_error", statuses=(400, 500)),
    Sign(code="request_too_large", statuses=(413,)),
    _VLLM,
)
_BILLING = {
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit_reached",
    "insufficient_balance",
    "credits_exhausted",
}
_BROKE = re.compile(r"(?:Your credit balance is too low|Insufficient Balance|Insufficient credits)", re.I)
_BUSY = {
    "rate_limit_error",
    "rate_limit_exceeded",
    "too_many_requests",
    "RESOURCE_EXHAUSTED",
    "throttlingException",
    "ThrottlingException",
}
_KEY = {"invalid_api_key", "authentication_error", "permission_error", "invalid_authentication", "API_KEY_INVALID"}
_DOWN = {
    "overloaded_error",
    "api_error",
    "server_error",
    "internal_server_error",
    "service_unavailable",
    "timeout_error",
    "UNAVAILABLE",
    "INTERNAL",
    "internalServerException",
    "serviceUnavailableException",
    "modelStreamErrorException",
}


def error_of(status: int, body: bytes, *, headers: Mapping[str, str], provider: str, address: str = "") -> ModelError:
    """The error that a refusal with HTTP `status` means. Header names are lower case."""
    said = read(body)
    if kind := headers.get("x-amzn-errortype", "").partition(":")[0]:  # AWS names the fault in a header
        said = structs.replace(said, codes=(*said.codes, kind))
    if not said.message and body.lstrip()[:1] == b"<":
        said = Refusal(f"HTML instead of JSON from {address}", said.codes)
    if 300 <= status < 400:
        return RequestError(
            f"{address} redirects to {headers.get('location', 'elsewhere')}",
            provider=provider,
            status=status,
            hint="Set base_url to the final address: keys are not sent along redirects.",
        )
    return _error(status, said, provider=provider, retry_after=_retry_after(headers))


def error_inside(value: object, *, provider: str) -> ModelError:
    """The error that an error object inside a 200 (whole or in a stream) means."""
    said = refusal_in(value)
    status = next((int(code) for code in said.codes if code.isdigit() and 400 <= int(code) < 600), 200)
    error = _error(status, said, provider=provider, retry_after=None)
    if status == 200 and isinstance(error, RequestError):
        return UpstreamError(str(error), provider=provider, status=200)
    return error


def _error(status: int, said: Refusal, *, provider: str, retry_after: float | None) -> ModelError:
    text = said.message or (", ".join(said.codes) if said.codes else f"HTTP {status} without a reason")
    codes = set(said.codes)
    limit = _overflow(status, said, provider=provider)
    if limit is not None:
        return ContextOverflowError(text, provider=provider, status=status, limit=limit)
    if status == 402 or codes & _BILLING or (status in (400, 429) and _BROKE.match(said.message)):
        return BillingError(text, provider=provider, status=status, hint="Add credit there, or use another model.")
    if status in (401, 403) or (status in (200, 400) and codes & _KEY):
        return CredentialError(text, provider=provider, status=status, hint="Check the API key.")
    if status == 429 or (status == 200 and codes & _BUSY):
        return RateLimitError(text, provider=provider, status=status, retry_after=retry_after)
    if (status >= 500 and status != 501) or status in (408, 409, 424, 425) or (status == 200 and codes & _DOWN):
        return UpstreamError(text, provider=provider, status=status)
    if status in (400, 422):
        from limpet.llm.refused import refused_field  # its table is large

        if (refused := refused_field(said)) is not None:
            return ParameterError(text, provider=provider, status=status, name=refused.name, scope=refused.scope)
    hint = "Check the name of the model and the address (base_url)." if status == 404 else ""
    return RequestError(text, provider=provider, status=status, hint=hint)


def _overflow(status: int, said: Refusal, *, provider: str) -> int | None:
    """The window in tokens (0: not named) when the refusal means that the prompt does not fit, else None."""
    for sign in OVERFLOW.get(provider, ()) + _ANY:
        if status not in sign.statuses:
            continue
        if sign.code and sign.code in said.codes:
            return said.limit or _named(said.message)
        if sign.message and (match := re.match(sign.message, said.message, re.I)):
            return int(match[1].replace(",", "")) if match.groups() and match[1] else said.limit
    return None


def _named(message: str) -> int:
    match = re.match(r"(?:This model's|This endpoint's|Your input exceeds).{0,60}?([\d,]{4,}) tokens", message)
    return int(match[1].replace(",", "")) if match else 0


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `retry-after` (a number or a date)."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(?:\.\d+)?", value):
            return float(value) / unit
        if value:
            try:
                when = email.utils.parsedate_to_datetime(value)
            except ValueError:
                continue
            return max(0.0, when.timestamp() - time.time())
    return None
