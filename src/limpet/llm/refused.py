"""Which field of a request a service says it does not know or take: by its codes, then by a table of known texts.

Patterns are anchored at the start of the provider's own message: text of the user that it quotes never matches.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from limpet.llm.refusal import Refusal

Scope = Literal["field", "value"]
"""What is refused: the whole field, or only the value that was sent."""


class Refused(Struct, frozen=True):
    """`name` is the last part of a path: `temperature` of `generationConfig.temperature`."""

    name: str
    scope: Scope = "field"


FIELD_CODES = {
    "unsupported_parameter",
    "unknown_parameter",
    "unrecognized_parameter",
    "parameter_not_supported",
    "extra_forbidden",
}
VALUE_CODES = {
    "unsupported_value",
    "invalid_value",
    "integer_above_max_value",
    "integer_below_min_value",
    "decimal_above_max_value",
    "decimal_below_min_value",
}
_ALL_OR_NOTHING = ("temperature", "top_p")
"""Where one value is refused, only the default is taken."""

_PATH = r"[`'\"\[(]*([A-Za-z_][\w.]{0,80})[`'\"\])]*"
_LEAD = (
    r"(?:Error code: \d+ - |litellm\.\w+: (?:\w+ ?- ?)?|\w*Error: |<400> [\w.]+: |Provider returned error \("
    r"|The model returned the following errors: |Malformed input request: |Validation error: |Bad request: )*"
)


def _sign(pattern: str, *, scope: Scope = "field", name: str = "") -> tuple[re.Pattern[str], Scope, str]:
    return re.compile(_LEAD + pattern, re.I), scope, name


_SIGNS = (
    # OpenAI, Azure and those that copy them
    _sign(rf"Unsupported parameter:? {_PATH}"),
    _sign(rf"Unsupported value: {_PATH} does not support", scope="value"),
    _sign(rf"Unknown parameter:? {_PATH}"),
    _sign(rf"Unrecognized request arguments? supplied: {_PATH}"),
    _sign(rf"Unrecognized (?:parameter|field|key)\(?s?\)?:? (?:in object: )?{_PATH}"),
    _sign(rf"(?:The )?parameters? {_PATH} (?:is|are) not (?:supported|allowed|permitted|recognized)"),
    _sign(rf"(?:Argument|Parameter) not supported on this model: {_PATH}"),
    _sign(rf"(?:The )?Model \S+ does not support (?:the )?parameters? {_PATH}"),
    _sign(rf"\S+ does not support parameters: {_PATH}"),
    # pydantic, as a path before it, a field behind it, or a list printed by Python
    _sign(r"(?:[\w\[\]-]+\.)*([A-Za-z_]\w{0,80}): Extra inputs are not permitted"),
    _sign(rf"Extra inputs are not permitted,? (?:field: )?{_PATH}"),
    _sign(r"\[\{'type': 'extra_forbidden', 'loc': \((?:'\w+', |\d+, )*'(\w+)',?\)"),
    _sign(r"\d+ validation errors? for \w+\s+(?:[\w\[\]-]+\.)*([A-Za-z_]\w{0,80})\s+Extra inputs are not permitted"),
    # Google
    _sign(r"Invalid JSON payload received\. Unknown name \\?\"(\w{1,80})\\?\""),
    _sign(r"Thinking (?:level|budget|config)? ?is not supported", name="thinkingConfig"),
    _sign(r"Unable to submit request because thinking is not supported", name="thinkingConfig"),
    # Anthropic, also behind others
    _sign(rf"{_PATH} is deprecated for this model"),
    _sign(rf"{_PATH} may only be set to 1", scope="value"),
    _sign(rf"{_PATH} and `?top_p`? cannot both be specified"),
    _sign(r"adaptive thinking is not supported", name="thinking"),
    _sign(r"This model does not support the effort parameter", name="output_config"),
    _sign(r"(?:#[\w/]*: )?extraneous key \[(\w{1,80})\] is not permitted"),
    # Groq, Cerebras, Moonshot, Mistral, Ollama
    _sign(r"(?:'[\w.]+' ?: )?(?:for '[\w:]+' the following must be satisfied\[\()?(?:'[\w.]+' : )?"
          r"property '(?:\w+\.)*(\w{1,80})' is unsupported"),
    _sign(rf"(?:[\w.]+ : )?property {_PATH} is unsupported"),
    _sign(r"invalid (temperature|top_p)\b", scope="value"),
    _sign(rf"{_PATH} is not (?:supported|enabled|allowed) (?:with|for|by|on) (?:this|the) model"),
    _sign(r"\"?think\"? value \S+ is not supported for this model", scope="value", name="reasoning_effort"),
    _sign(r"\S{1,100} does not support thinking", name="reasoning_effort"),
)  # fmt: skip


def refused_field(said: Refusal) -> Refused | None:
    """The field that a refusal is about, None when it is about something else."""
    if said.parameter:
        if FIELD_CODES.intersection(said.codes):
            return _refused(said.parameter, "field")
        if VALUE_CODES.intersection(said.codes):
            return _refused(said.parameter, "value")
    for message in filter(None, (said.message, said.inside)):
        for pattern, scope, name in _SIGNS:
            if match := pattern.match(message):
                return _refused(name or match[1], scope)
    return None


def _refused(path: str, scope: Scope) -> Refused | None:
    name = path.rstrip(".").rpartition(".")[2].strip("[]'\"` ")
    if not name:
        return None
    return Refused(name, "field" if name in _ALL_OR_NOTHING else scope)
